"""The games of a server's snakes, written during play and read by the viewer, commands and
training.
"""
