"""Statistics for comparing runs: results at equal time, ratios, and intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from agents.measure.pages import Line
from train.runs.curves.history import Columns

LAST_SHARE = 0.2
"""A run's result is the mean over the episodes that ended in this last part of the time."""
CONFIDENCE = 0.95
_LINES_NOTE = "Lines: means over seeds, all brought onto one grid."
BAND_NOTE = (
    f"{_LINES_NOTE} Bands: 95 % bootstrap intervals of the mean over seeds. Of three seeds such an"
    " interval reaches from the lowest to the highest and holds the true mean in three cases of"
    " four."
)
BAND_NOTES = {
    "bootstrap": BAND_NOTE,
    "student": (
        f"{_LINES_NOTE} Bands: Student's 95 % intervals of the mean over seeds, point by point."
    ),
    "none": _LINES_NOTE,
}
"""The note under a chart about its lines and bands, by the interval that `mean_line` draws."""
_RESAMPLES = 2000
_OVER_EPISODES = ("episode_", "mean_")
"""Beginnings of metrics that are means over the episodes that ended in an iteration."""
OTHER_MEANS = ("mean_turns_vs_", "mean_length_vs_", "mean_kl_loss")
"""Beginnings of metrics that are not such means in spite of `_OVER_EPISODES`: of games that measure
the policy, and of updates.
"""


@dataclass(frozen=True)
class SeedEstimate:
    """A figure with its 95 % interval, which is NaN if there is only one seed."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def to_dict(self) -> dict[str, float | None]:
        """Return the figures as a JSON-able dict, with None for NaN."""
        figures = asdict(self)
        return dict(zip(figures, finite_or_none(figures.values()), strict=True))

    @classmethod
    def from_dict(cls, data: Mapping[str, float | None]) -> SeedEstimate:
        """Make an estimate of what `to_dict` returned."""
        figures = {name: value for name, value in data.items() if value is not None}
        return cls(**{"value": math.nan, **figures})

    def text(self, form: str = "{:.3g}") -> str:
        """Return the figure as text, with its interval if there is one."""
        if math.isnan(self.value):
            return "unknown"
        value = form.format(self.value)
        if math.isnan(self.low):
            return value
        return f"{value} ({form.format(self.low)} to {form.format(self.high)})"


def finite_or_none(values: Iterable[float]) -> list[float | None]:
    """Return the values for JSON, with None for NaN and infinity."""
    return [value if math.isfinite(value) else None for value in values]


def reached(columns: Columns, name: str, minutes: float) -> float:
    """Return the mean of an episode metric over the last `LAST_SHARE` of `minutes` of training.
    Each episode counts the same.

    It is NaN if no episode ended in that time.
    """
    episodes = columns["episodes"]
    values = columns.get(name, np.full(len(columns["minutes"]), math.nan))
    late = (columns["minutes"] > (1 - LAST_SHARE) * minutes) & (episodes > 0) & np.isfinite(values)
    if late.any():
        return float(np.average(values[late], weights=episodes[late]))
    return math.nan


def reached_at(columns: Columns, metric: str, at: float, *, by: str = "minutes") -> float:
    """Return a run's result when the column `by` was `at`, ignoring later rows.

    It is the mean over the last `LAST_SHARE` of the rows up to then, where each episode counts
    the same. For a metric without values there, such as an evaluation's, it is the last value
    before, or else NaN."""
    places, values, weights = _measurements(columns, metric, by)
    before = places <= at
    late = before & (places > (1 - LAST_SHARE) * at)
    if late.any():
        return float(np.average(values[late], weights=weights[late]))
    if before.any():
        return float(values[before][-1])
    return math.nan


def mean(values: Sequence[float]) -> SeedEstimate:
    """Return the mean of one figure per seed, with Student's interval. Without values it is NaN."""
    if not len(values):
        return SeedEstimate(math.nan)
    by_seed = np.array(values, np.float64)
    average = float(by_seed.mean())
    if len(by_seed) == 1:
        return SeedEstimate(average)
    return SeedEstimate(average, *student_interval(by_seed))


def ratio(values: Sequence[float], baseline: Sequence[float]) -> SeedEstimate:
    """Return the ratio of the geometric means over seeds, with Welch's interval for the difference
    of logarithms.

    It is NaN unless all figures are above 0.
    """
    above = np.array(values, np.float64)
    below = np.array(baseline, np.float64)
    if not (len(above) and len(below) and (above > 0).all() and (below > 0).all()):
        return SeedEstimate(math.nan)
    logs = difference(np.log(above), np.log(below))
    return SeedEstimate(*(math.exp(value) for value in (logs.value, logs.low, logs.high)))


def difference(
    values: Sequence[float] | np.ndarray, baseline: Sequence[float] | np.ndarray
) -> SeedEstimate:
    """Return the difference of the means over seeds, with Welch's interval; NaN if either has only
    one seed.
    """
    gap, error, freedom = _welch(values, baseline)
    # Seeds that don't vary have no degrees of freedom, and no margin either.
    margin = _quantile(freedom) * error if error else 0.0
    return SeedEstimate(gap, gap - margin, gap + margin)


def p_value(values: Sequence[float], baseline: Sequence[float]) -> float:
    """Return the probability of a difference of means at least this large if there is none, by
    Welch's t-test, two-sided.

    It is NaN if there is only one seed of either. Seeds that don't vary at all give 0, or 1 if they
    are equal."""
    from scipy.stats import t

    gap, error, freedom = _welch(values, baseline)
    if not error:
        return float(gap == 0)
    return float(2 * t.sf(abs(gap) / error, freedom))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for multiple tests (Holm 1979). NaN doesn't count as a test, and
    stays.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if math.isfinite(p))
    adjusted = [math.nan] * len(p_values)
    least = 0.0
    for rank, (p, place) in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p))
        adjusted[place] = least
    return adjusted


def _welch(
    values: Sequence[float] | np.ndarray, baseline: Sequence[float] | np.ndarray
) -> tuple[float, float, float]:
    """(difference of the means, its standard error, degrees of freedom), the latter two NaN without
    two values on each side.
    """
    parts = [np.array(values, np.float64), np.array(baseline, np.float64)]
    if all(map(len, parts)):
        gap = float(parts[0].mean() - parts[1].mean())
    else:
        gap = math.nan
    if min(map(len, parts)) < 2:
        return gap, math.nan, math.nan
    errors = [part.var(ddof=1) / len(part) for part in parts]
    if not sum(errors):
        return gap, 0.0, math.nan
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(part) - 1) for error, part in zip(errors, parts, strict=True)
    )
    return gap, math.sqrt(sum(errors)), float(freedom)


def mean_line(
    name: str,
    runs: Sequence[Columns],
    metric: str,
    *,
    by: str = "minutes",
    points: int = 60,
    interval: str = "bootstrap",
) -> Line:
    """Return the mean of a metric over the runs of one experiment, with a 95 % interval if there
    are several runs.

    `interval` is one of `BAND_NOTES`. All runs are brought onto one grid of `points` along the
    column `by`. The grid goes from where the last run begins to where the first one ends, so that
    every point is a mean over all runs. Without a common stretch the line has no point."""
    places = [_measurements(columns, metric, by)[0] for columns in runs]
    grid = _common_grid(places, points) if all(map(len, places)) else np.zeros(0)
    if not len(grid):
        return Line(name=name, x=grid, y=grid)
    by_run = np.array([_on_grid(columns, metric, by, grid) for columns in runs])
    if len(runs) > 1 and interval in _BANDS:
        band = dict(zip(("low", "high"), _BANDS[interval](by_run), strict=True))
    else:
        band = {}
    return Line(name=name, x=grid, y=by_run.mean(axis=0), **band)


def bootstrap_interval(values: np.ndarray) -> np.ndarray:
    """Return the 95 % interval of the mean over the first axis of `values`, float64 (n, points), as
    (2, points): low and high.

    It is the percentile bootstrap (Efron 1979): n of the rows are drawn with replacement, always
    with the same draws. For few rows it is too narrow: with three it reaches from the lowest to the
    highest, which holds the true mean in three cases of four."""
    rows = np.random.default_rng(0).integers(len(values), size=(_RESAMPLES, len(values)))
    tail = 50 * (1 - CONFIDENCE)
    return np.percentile(values[rows].mean(axis=1), [tail, 100 - tail], axis=0)


def student_interval(values: np.ndarray) -> np.ndarray:
    """Return Student's 95 % interval of the mean over the first axis, as `bootstrap_interval` does;
    at least two rows.
    """
    margin = _quantile(len(values) - 1) * values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return values.mean(axis=0) + np.array([-margin, margin])


_BANDS = {"bootstrap": bootstrap_interval, "student": student_interval}


def _measurements(
    columns: Columns, metric: str, by: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(place along `by`, value, weight) of the rows that have the metric, each float64 (rows,).

    The weight is the number of episodes that the value is a mean of, or 1."""
    nothing = np.full(len(columns[by]), math.nan)
    values = columns.get(metric, nothing)
    places = columns[by]
    is_of_episodes = metric.startswith(_OVER_EPISODES) and not metric.startswith(OTHER_MEANS)
    if is_of_episodes:
        weights = np.nan_to_num(columns["episodes"])
    else:
        weights = np.ones(len(places))
    rows = np.isfinite(values) & np.isfinite(places) & (weights > 0)
    return places[rows], values[rows], weights[rows]


def _common_grid(places: Sequence[np.ndarray], points: int) -> np.ndarray:
    low = max(own[0] for own in places)
    high = min(own[-1] for own in places)
    if high > low:
        return np.linspace(low, high, points)
    if high == low:
        return np.array([low])
    return np.zeros(0)


def _on_grid(columns: Columns, metric: str, by: str, grid: np.ndarray) -> np.ndarray:
    """The metric at each point of `grid`: the mean over the rows that are nearest to it, or, where
    rows are farther apart than points, a straight line between them.
    """
    places, values, weights = _measurements(columns, metric, by)
    step = grid[1] - grid[0] if len(grid) > 1 else math.inf
    cell = np.abs(places[:, None] - grid).argmin(axis=1)
    beyond = np.abs(places - grid[cell]) > step / 2
    # What lies beyond the grid doesn't belong to its ends' means.
    cell[beyond] = len(grid) + np.arange(beyond.sum())
    sums, counts, spots = (
        np.bincount(cell, part) for part in (values * weights, weights, places * weights)
    )
    met = counts > 0
    middles = spots[met] / counts[met]
    means = sums[met] / counts[met]
    order = np.argsort(middles)
    return np.interp(grid, middles[order], means[order])


def _quantile(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf((1 + CONFIDENCE) / 2, freedom))
