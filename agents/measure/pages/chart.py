"""Describes charts, which uPlot draws on pages (`agents.measure.pages.page`) and matplotlib
elsewhere (`agents.measure.pages.figure`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

_MOST_POINTS = 300


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve.

    `x` and `y` are float arrays of one length, with NaN where a value is unknown. `low` and `high`
    are a band around the curve."""

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    def known(self) -> Line:
        """Return the line without the points whose y is unknown."""
        finite = np.isfinite(self.y)
        return self._map(lambda values: values[finite])

    def thinned(self) -> Line:
        """Return the line with at most `_MOST_POINTS` points, which are means over neighbours, so
        that a long run's page stays small.
        """
        size = -(-len(self.x) // _MOST_POINTS)
        if size <= 1:
            return self
        starts = np.arange(0, len(self.x), size)

        def means(values: np.ndarray) -> np.ndarray:
            finite = np.isfinite(values)
            sums = np.add.reduceat(np.where(finite, values, 0.0), starts)
            counts = np.add.reduceat(finite.astype(float), starts)
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

        return self._map(means)

    def _map(self, function: Callable[[np.ndarray], np.ndarray]) -> Line:
        """The line with a function of each of its arrays in their place."""
        arrays = {"x": self.x, "y": self.y, "low": self.low, "high": self.high}
        new: dict[str, Any] = {
            name: function(array) for name, array in arrays.items() if array is not None
        }
        return replace(self, **new)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves in one frame."""

    title: str
    x_label: str
    """The name of the x axis, with its unit."""
    y_label: str
    """The name of the y axis, with its unit."""
    lines: Sequence[Line]
    stacked: bool = False
    """If True, the lines are parts of a whole and are stacked. They must have the same x; unknown
    values count as 0.
    """
    from_zero: bool = False
    """If True, the y axis begins at 0, or below the lowest value if that is negative."""
    shares: bool = False
    """If True, values are fractions 0..1 and are written as percentages."""

    def drawn(self) -> list[Line]:
        """Return the lines to draw: thinned, without empty ones, and as bands if stacked."""
        if not self.stacked:
            return [line.known().thinned() for line in self.lines if np.isfinite(line.y).any()]
        if not self.lines or not len(self.lines[0].x):
            return []
        thinned = [line.thinned() for line in self.lines]
        floor = np.zeros(1)
        layers = []
        for line in thinned:
            top = floor + np.nan_to_num(line.y)
            layers.append(replace(line, low=np.broadcast_to(floor, top.shape), high=top))
            floor = top
        return layers


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Figures with their intervals, one row per figure, the first at the top."""

    title: str
    x_label: str
    """The name of the x axis, with its unit."""
    rows: Sequence[tuple[str, float, float, float]]
    """(name, value, low, high)."""
