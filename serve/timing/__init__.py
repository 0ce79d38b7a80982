"""Answers in time: deadlines, shared cores, stalls, and the distance to the engine."""
