"""A search's analysis of a recorded game: win chances, mistakes, the turn where the game was lost,
and why.
"""
