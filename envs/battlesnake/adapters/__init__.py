"""What the Gymnasium and PettingZoo environments stand on: one game with its pictures, opponents,
a batch of games against them, and the spaces of old gym.
"""
