"""Compares trainers at equal time."""
