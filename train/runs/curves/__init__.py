"""The curves of runs: read, compared by statistics, and drawn in one frame."""
