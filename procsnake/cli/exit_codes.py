"""Exit codes of commands that failed or were interrupted."""

USER_ERROR = 2
"""The input can't be right, or the surroundings lack something; a line has said what."""
INTERRUPTED = 130
"""Ctrl-C, as shells have it."""
