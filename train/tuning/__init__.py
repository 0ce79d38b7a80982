"""Searches for better hyperparameters, by Ray Tune."""
