"""What the Gymnasium and PettingZoo environments share: one game with its pictures, opponents, a
batch of games against them, and the spaces of old gym.
"""
