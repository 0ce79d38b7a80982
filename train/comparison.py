"""The arithmetic of comparing runs: what was reached at equal time, ratios, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from train.report import Columns

LAST_SHARE = 0.2
"""What was reached is the mean over the episodes that ended in this last part of the time."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; without one (NaN) if there is a single seed."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def to_dict(self) -> dict[str, float | None]:
        """JSON-able: what is no number is None."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, float | None]) -> Estimate:
        """The inverse of `to_dict`."""
        return cls(**{name: math.nan if value is None else value for name, value in data.items()})

    def text(self, form: str = "{:.3g}") -> str:
        """With the interval, if there is one."""
        if math.isnan(self.value):
            return "unknown"
        value = form.format(self.value)
        return value if math.isnan(self.low) else f"{value} ({form.format(self.low)} to {form.format(self.high)})"


def reached(columns: Columns, name: str, minutes: float) -> float:
    """Mean of an episode metric over the last `LAST_SHARE` of `minutes` of training, each episode counting the same.

    NaN if no episode ended in that time.
    """
    episodes, values = columns["episodes"], columns.get(name, np.full(len(columns["minutes"]), math.nan))
    late = (columns["minutes"] > (1 - LAST_SHARE) * minutes) & (episodes > 0) & np.isfinite(values)
    return float(np.average(values[late], weights=episodes[late])) if late.any() else math.nan


def mean(values: Sequence[float]) -> Estimate:
    """Of one figure a seed, with Student's interval."""
    known = np.array(values, np.float64)
    if len(known) < 2:
        return Estimate(float(known.mean()) if len(known) else math.nan)
    margin = _quantile(len(known) - 1) * known.std(ddof=1) / math.sqrt(len(known))
    return Estimate(float(known.mean()), float(known.mean() - margin), float(known.mean() + margin))


def ratio(values: Sequence[float], baseline: Sequence[float]) -> Estimate:
    """Of the geometric means over seeds, with Welch's interval for the difference of logarithms. NaN unless all are above 0."""
    above, below = np.array(values, np.float64), np.array(baseline, np.float64)
    if not (len(above) and len(below) and (above > 0).all() and (below > 0).all()):
        return Estimate(math.nan)
    logs = [np.log(above), np.log(below)]
    difference = float(logs[0].mean() - logs[1].mean())
    if min(len(above), len(below)) < 2:
        return Estimate(math.exp(difference))
    errors = [part.var(ddof=1) / len(part) for part in logs]
    if not sum(errors):
        return Estimate(math.exp(difference), math.exp(difference), math.exp(difference))
    freedom = sum(errors) ** 2 / sum(error**2 / (len(part) - 1) for error, part in zip(errors, logs, strict=True))
    margin = _quantile(freedom) * math.sqrt(sum(errors))
    return Estimate(math.exp(difference), math.exp(difference - margin), math.exp(difference + margin))


def curve(runs: Sequence[Columns], name: str, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mean, low, high) over the runs at each minute of `grid`: the episodes that ended since the one before. NaN: unknown."""
    points = [mean(column[np.isfinite(column)]) for column in on_grid(runs, name, grid).T]
    return np.array([p.value for p in points]), np.array([p.low for p in points]), np.array([p.high for p in points])


def on_grid(runs: Sequence[Columns], name: str, grid: np.ndarray) -> np.ndarray:
    """Mean of an episode metric, float64 (runs, points), over the episodes that ended up to each minute of `grid` since the one
    before. NaN: none did."""
    return np.array([_on_grid(columns, name, grid) for columns in runs])


def _on_grid(columns: Columns, name: str, grid: np.ndarray) -> np.ndarray:
    values = columns.get(name, np.full(len(columns["minutes"]), math.nan))
    weights = np.where(np.isfinite(values), columns["episodes"], 0.0)
    cell = np.searchsorted(grid, columns["minutes"])
    sums, counts = np.zeros(len(grid) + 1), np.zeros(len(grid) + 1)
    np.add.at(sums, cell, np.nan_to_num(values) * weights)
    np.add.at(counts, cell, weights)
    return np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)[:-1]


def _quantile(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf((1 + CONFIDENCE) / 2, freedom))
