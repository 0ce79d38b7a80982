"""Means, aggregates and performance profiles of scores with 95 % intervals, by rliable (Agarwal et
al. 2021, arXiv 2108.13264).

Importing this module without rliable raises `MissingDependencyError`, before anything is played.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from envs.common.errors import MissingDependencyError, pip_install

try:
    from rliable.library import create_performance_profile, get_interval_estimates
    from rliable.metrics import aggregate_iqm, aggregate_mean, aggregate_optimality_gap
except ImportError as error:
    install = pip_install("procsnake[procgen]")
    raise MissingDependencyError(
        "rliable", feature="an interval of Procgen scores", install=install
    ) from error

_AGGREGATES: dict[str, Callable[[np.ndarray], float]] = {
    "interquartile mean": aggregate_iqm,
    "mean": aggregate_mean,
    "optimality gap": aggregate_optimality_gap,
}

_FEWEST_RUNS = 2
"""The runs of a game that an interval needs: of a single run the bootstrap would only draw copies.
"""


@dataclass(frozen=True, kw_only=True)
class AggregateEstimate:
    """A figure over several runs, with its 95 % interval."""

    name: str
    value: float
    interval: tuple[float, float] | None
    """None if a game has one run only, which can't show how much runs differ."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def interval_in_words(self) -> str:
        """The interval as text, "-" where there is none."""
        return interval_in_words(self.interval)


def interval_in_words(interval: Sequence[float] | None) -> str:
    """Return an interval as text, "-" for None."""
    if interval is None:
        return "-"
    return "{:.3f} … {:.3f}".format(*interval)


def aggregates(scores: np.ndarray) -> list[AggregateEstimate]:
    """Return the aggregates of normalised scores (runs, games). The stratified bootstrap draws runs
    within each game.
    """
    if len(scores) < _FEWEST_RUNS:
        return [
            AggregateEstimate(name=name, value=float(figure(scores)), interval=None)
            for name, figure in _AGGREGATES.items()
        ]
    values, (low, high) = _estimate(
        scores, lambda sample: np.array([figure(sample) for figure in _AGGREGATES.values()])
    )
    return [
        AggregateEstimate(
            name=name, value=float(values[k]), interval=(float(low[k]), float(high[k]))
        )
        for k, name in enumerate(_AGGREGATES)
    ]


def probability_of_improvement(ours: np.ndarray, theirs: np.ndarray) -> AggregateEstimate:
    """Return the probability that one of our runs scores more than one of theirs on the same game,
    averaged over the games.

    Both arguments are scores (runs, games) of the same games in the same order; the numbers of runs
    may differ. Ties count half."""

    with _seeded():
        values, intervals = get_interval_estimates(
            {"": [ours, theirs]}, _share_of_won_pairs, reps=2000
        )
    interval = None
    if min(len(ours), len(theirs)) >= _FEWEST_RUNS:
        low, high = intervals[""][:, 0]
        interval = (float(low), float(high))
    return AggregateEstimate(
        name="probability of improvement", value=float(values[""][0]), interval=interval
    )


def _share_of_won_pairs(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return rliable's probability of improvement, (1,), without the tests of significance that it
    works out beside it, which take a hundred times as long.
    """
    wins = ours[:, None, :] > theirs[None]
    ties = ours[:, None, :] == theirs[None]
    return np.array([(wins + ties / 2).mean()])


def mean_interval(returns: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean of returns (episodes,), by the plain bootstrap."""
    _, (low, high) = _estimate(returns[:, None], lambda sample: np.array([sample.mean()]))
    return float(low[0]), float(high[0])


def performance_profile(
    scores: np.ndarray, thresholds: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return the share of scores (runs, games) above each threshold (T,), and the ends of its
    interval, each float64 (T,).

    One run has no interval.
    """
    with _seeded():
        shares, bands = create_performance_profile({"": scores}, thresholds, reps=500)
    if len(scores) < _FEWEST_RUNS:
        return shares[""], None, None
    low, high = bands[""]
    return shares[""], low, high


def _estimate(
    scores: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    with _seeded():
        values, intervals = get_interval_estimates({"": scores}, statistic, reps=2000)
    return values[""], intervals[""]


@contextmanager
def _seeded() -> Iterator[None]:
    """Seed NumPy's global generator, from which rliable draws whatever `random_state` it is given,
    and restore it afterwards.
    """
    before = np.random.get_state()
    np.random.seed(0)
    try:
        yield
    finally:
        np.random.set_state(before)
