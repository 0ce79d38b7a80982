"""Values that change in the course of a run.

A schedule is a number, or knots [[0, value], [steps, value], …] joined by lines.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Knots: TypeAlias = list[list[float]]


def value_at(schedule: float | Knots, steps: float) -> float:
    """Return the value at `steps`. At a knot it is exactly the knot's value; after the last knot it
    stays the same.
    """
    if not isinstance(schedule, list):
        return float(schedule)
    at, values = zip(*schedule, strict=True)
    return float(np.interp(steps, at, values))
