from .registry import CUSTOM_ALGORITHMS

__all__ = ["CUSTOM_ALGORITHMS"]
