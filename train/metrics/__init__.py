"""What is measured while a trainer works: the row of an iteration, returns by level, and what this
process is doing.
"""
