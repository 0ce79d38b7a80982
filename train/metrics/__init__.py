"""Measurements during training: an iteration's row, returns by level, and the current piece of
work.
"""
