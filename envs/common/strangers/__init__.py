"""Files that strangers may have made: they are read within bounds, and run only if they are our
own.
"""
