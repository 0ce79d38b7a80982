"""The games that a server's snakes have played. They are written while they play, and read by the
viewer and by people.
"""
