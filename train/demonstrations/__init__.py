"""Learning from demonstrations: what was seen and what was played then, by a teacher or in recorded
games.
"""
