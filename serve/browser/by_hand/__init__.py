"""A person plays Battlesnake, in the browser or in the terminal, against agents and snakes behind
URLs.
"""
