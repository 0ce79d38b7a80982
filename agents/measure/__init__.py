"""Measures players: by games, episodes, tournaments and sequential tests, and move by move. Its
pages show the results.
"""
