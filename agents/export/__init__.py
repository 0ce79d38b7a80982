"""Writes a trained policy in other forms: with smaller weights, or for TensorFlow."""
