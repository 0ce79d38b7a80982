"""Recorded games in the browser, with what a search thinks of every move. It costs seconds, so it
is for this machine only.
"""
