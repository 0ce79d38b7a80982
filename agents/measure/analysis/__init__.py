"""What a search thinks of the moves of a recorded game: chances, mistakes, the turn where the game
was lost, and why.
"""
