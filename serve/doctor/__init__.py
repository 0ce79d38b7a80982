"""What a platform will do to a snake, done before it does: the four calls, what engines send, many games at once.

`examination.examine` is the whole of it. Nothing is imported here, so that the command line stays quick.
"""
