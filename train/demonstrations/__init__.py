"""Learning from demonstrations: observations and the actions taken, by a teacher or in recorded
games.
"""
