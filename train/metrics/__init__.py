"""Measurements while a trainer works: the row of an iteration, returns by level, and the current
piece of work.
"""
