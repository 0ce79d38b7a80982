"""Describes a chart. uPlot draws it on pages (`agents.measure.pages.page`), matplotlib elsewhere
(`agents.measure.pages.figure`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

COLOURS = ("#2f6fde", "#d9542b", "#2a9d5c", "#9a4fd0", "#c69214", "#1399a6", "#d63c83", "#7b7f87")
_MOST_POINTS = 300


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve.

    `x` and `y` are float arrays of one length, NaN where a value is unknown; `low` and `high` are a
    band around it."""

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    def known(self) -> Line:
        """Return the line without the points whose y is unknown."""
        return self._map(np.isfinite(self.y))

    def thinned(self) -> Line:
        """Return the line with at most `_MOST_POINTS` points, as means over neighbours.

        So a long run's page stays small.
        """
        size = -(-len(self.x) // _MOST_POINTS)
        if size <= 1:
            return self
        starts = np.arange(0, len(self.x), size)

        def means(values: np.ndarray) -> np.ndarray:
            finite = np.isfinite(values)
            sums, counts = (
                np.add.reduceat(part, starts)
                for part in (np.where(finite, values, 0.0), finite.astype(float))
            )
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

        parts: dict[str, Any] = {
            name: means(part)
            for name in ("x", "y", "low", "high")
            if (part := getattr(self, name)) is not None
        }
        return replace(self, **parts)

    def _map(self, rows: np.ndarray) -> Line:
        parts: dict[str, Any] = {
            name: part[rows]
            for name in ("x", "y", "low", "high")
            if (part := getattr(self, name)) is not None
        }
        return replace(self, **parts)


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
        """Return the lines as they are drawn: without empty ones, thinned, and stacked ones as
        bands.
        """
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
    """Figures with their intervals, with one row per figure and the first at the top."""

    title: str
    x_label: str
    """The name of the x axis, with its unit."""
    rows: Sequence[tuple[str, float, float, float]]
    """(name, value, low, high)."""
