"""Values that change in the course of a run: a number, or knots [[0, value], [steps, value], …] with lines between them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Knots: TypeAlias = list[list[float]]


def value_at(schedule: float | Knots, steps: float) -> float:
    """The value at `steps`: exactly a knot's value at the knot, and after the last it stays."""
    if not isinstance(schedule, list):
        return float(schedule)
    at, values = zip(*schedule, strict=True)
    return float(np.interp(steps, at, values))
