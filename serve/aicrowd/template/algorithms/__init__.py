"""The algorithms that Ray 0.8.6 doesn't have."""

from algorithms.registry import CUSTOM_ALGORITHMS

__all__ = ["CUSTOM_ALGORITHMS"]
