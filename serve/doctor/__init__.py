"""Checks a snake as a platform would, before a platform does: the four calls, odd requests, many
games at once.

Call `examination.examine`. Nothing is imported here, so that the command line stays quick.
"""

CHECK_PREFIX = "doctor-"
"""How the id of every game begins that the doctor plays. A server of ours keeps these games and
shows them, but counts them in no figure and exports none.

The mark is part of the id, which is part of the key under which a game is kept: nobody can put it
on a game of somebody else's later. Whoever plays under such an id hides nothing: its games stand in
the list, their number beside the figures, and `/metrics` counts all requests. """
