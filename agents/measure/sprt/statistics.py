"""The generalised sequential probability ratio test on normalised Elo, over blocks of games.

A block is one start that is played once per seat, with the first player in each seat in turn. Games
of one block share their luck, so a block is one observation. Its score is the first player's mean
score. Nothing is assumed about how the games of a block depend on each other. For two seats a block
is a pair, and its five possible scores are the pentanomial model of chess.

Normalised Elo is the mean score above par in units of the standard deviation of one game, times 800
/ ln 10. It alone determines how many games are needed to see a difference. Sources: M. Van den
Bergh, "Normalized Elo" and "Comments on Normalized Elo" (the maximum-likelihood estimate); A. Wald,
"Sequential Analysis", 1947 (bounds, expected length)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from statistics import NormalDist
from typing import Literal

import numpy as np

from agents.measure.evaluation import wilson_interval
from envs.common.errors import ConfigError

Verdict = Literal["H0", "H1"]
MAX_SEATS = 4
_SCALE = 800 / math.log(10)
_MAX_ELO = 100.0
_UNSEEN = 1e-3
"""The count that stands for a score that no block has had yet, so that every score keeps some
likelihood.
"""
_PLACES = 16
"""How many places the bracket of a mean is looked for among."""
_STEPS = 100
_PRECISION = 1e-9
_MAX_EXPONENT = 700


@dataclass(frozen=True, kw_only=True)
class Hypotheses:
    """The two hypotheses between which a test decides. Raises `ConfigError` for values out of
    range.
    """

    elo0: float = 0.0
    """By how much the first player is above the second under H0, in normalised Elo."""
    elo1: float = 10.0
    """By how much it is above the second under H1. This must be more than `elo0`."""
    alpha: float = 0.05
    """The accepted probability of deciding for H1 if `elo0` is true."""
    beta: float = 0.05
    """The accepted probability of deciding for H0 if `elo1` is true."""

    def __post_init__(self) -> None:
        if not -_MAX_ELO <= self.elo0 < self.elo1 <= _MAX_ELO:
            raise ConfigError(
                f"elo0 is {self.elo0:g} and elo1 {self.elo1:g}; elo0 must be the smaller one, and"
                f" both from {-_MAX_ELO:g} to {_MAX_ELO:g}"
            )
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise ConfigError(
                    f"{name} is {getattr(self, name):g}; it must be above 0 and below 0.5"
                )

    @property
    def bounds(self) -> tuple[float, float]:
        """Wald's bounds: H0 is accepted once the log-likelihood ratio is at or below the first, H1
        at or above the second.
        """
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def verdict(self, ratio: float) -> Verdict | None:
        """Return the hypothesis that a log-likelihood ratio decides for, or None while it lies
        between the bounds.
        """
        low, high = self.bounds
        if ratio <= low:
            return "H0"
        if ratio >= high:
            return "H1"
        return None


@cache
def possible_scores(seats: int) -> tuple[Fraction, ...]:
    """Return the scores from 0 to 1 that a block of games among `seats` snakes can have, in
    ascending order.

    In a game the player that alone comes first scores 1. Players that share the first place have
    equal shares of 1, and all others score 0. Raises `ConfigError` for other numbers of seats than
    2 to `MAX_SEATS`."""
    if not 2 <= seats <= MAX_SEATS:
        raise ConfigError(f"a test has 2 to {MAX_SEATS} snakes per game, not {seats}")
    game_scores = [Fraction(0), *(Fraction(1, sharing) for sharing in range(1, seats + 1))]
    blocks = combinations_with_replacement(game_scores, seats)
    return tuple(sorted({sum(block, Fraction(0)) / seats for block in blocks}))


def log_likelihood_ratio(counts: np.ndarray, seats: int, hypotheses: Hypotheses) -> np.ndarray:
    """Return the logarithm of the likelihood under H1 divided by that under H0, float64 (…), which
    is 0 without blocks.

    `counts` (…, K) says how many blocks had each of the `possible_scores`. Each hypothesis is taken
    with the distribution of block scores under which the counts are most likely."""
    # From here on the scores' axis comes first, because NumPy is fast at sums over few rows of many
    # columns.
    positive = np.where(counts > 0, counts, _UNSEEN)
    by_score = np.moveaxis(positive, -1, 0).astype(float, order="C")
    total = by_score.sum(axis=0)
    frequencies = (by_score / total).reshape(len(by_score), -1)
    under0, under1 = (
        _most_likely(frequencies, seats, elo / _SCALE * math.sqrt(seats))
        for elo in (hypotheses.elo0, hypotheses.elo1)
    )
    ratio = total * (frequencies * np.log(under1 / under0)).sum(axis=0).reshape(total.shape)
    return np.where(np.sum(counts, axis=-1) > 0, ratio, 0.0)


def _most_likely(frequencies: np.ndarray, seats: int, t: float) -> np.ndarray:
    """The distributions (K, n) that make `frequencies` (K, n) most likely, among those whose mean
    is par + t deviations.

    With Lagrange's multiplier x they are frequencies / (1 + x φ), where φ is the constraint's
    derivative at the solution. φ follows from the mean alone, because the deviation is then (mean
    - par) / t. So the search is for the mean whose φ leads to a distribution of just this mean. It
    takes secants within a bracket, and halves the bracket in every third step."""
    # From here on, scores are counted from par, in the direction of t.
    beyond = math.copysign(1, t) * (np.array(possible_scores(seats), float)[:, None] - 1 / seats)
    if t == 0:
        return _tilted(frequencies, np.broadcast_to(beyond, frequencies.shape))
    low, high = _bracket(frequencies, beyond, t)
    mean = np.sqrt(low * high)
    last = np.full_like(low, np.nan)
    last_short = np.full_like(low, np.nan)
    for turn in range(_STEPS):
        distributions = _tilted(frequencies, _slope(beyond, mean, t))
        short = (distributions * beyond).sum(axis=0) - mean
        is_settled = np.abs(short) < _PRECISION
        if is_settled.all():
            break
        low = np.where(short > 0, mean, low)
        high = np.where(short > 0, high, mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = mean - short * (mean - last) / (short - last_short)
        is_taken = (secant > low) & (secant < high) & (turn % 3 > 0)
        after = np.where(is_taken, secant, np.sqrt(low * high))
        last = mean
        last_short = short
        mean = np.where(is_settled, mean, after)
    return distributions


def _bracket(
    frequencies: np.ndarray, beyond: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray]:
    """The ends, each (n,), between which the mean lies that `_most_likely` looks for.

    If the frequencies are on the other side of the constraint than par's, there may be several such
    means. Then it is the one beside which the frequencies are most likely."""
    # For a lower mean φ would be positive nowhere; a higher one would be above the highest score,
    # or the deviation above 1.
    lowest = beyond[beyond > 0].min() * (1 - 1 / math.sqrt(1 + t * t))
    edges = np.geomspace(lowest, min(abs(t), beyond.max()), _PLACES + 2)
    inner = edges[1:-1]
    observed = frequencies[..., None]
    tilted = _tilted(observed, _slope(beyond[..., None], inner, t))
    divergence = (observed * np.log(observed / tilted)).sum(axis=0)
    divergence = np.pad(divergence, ((0, 0), (1, 1)), constant_values=np.inf)
    is_short = (tilted * beyond[..., None]).sum(axis=0) > inner
    is_short = np.pad(is_short, ((0, 0), (1, 1)), constant_values=((0, 0), (True, False)))

    holds_one = is_short[:, :-1] & ~is_short[:, 1:]
    least = np.minimum(divergence[:, :-1], divergence[:, 1:])
    place = np.where(holds_one, least, np.inf).argmin(axis=1)
    return edges[place], edges[place + 1]


def _slope(beyond: np.ndarray, mean: np.ndarray, t: float) -> np.ndarray:
    """Return φ: by how much the mean rises above t deviations with each score's probability, at a
    distribution whose mean is t deviations.
    """
    return beyond - mean / 2 - (t * (beyond - mean)) ** 2 / (2 * mean)


def _tilted(frequencies: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The distributions (K, …) that make `frequencies` (K, …) most likely, among those in which the
    mean of `slope` is 0.

    They are frequencies / (1 + x · slope), where Σ frequencies · slope / (1 + x · slope) = 0. The
    sum falls as x rises, so x is found by Newton's method within a bracket."""
    low = -1 / slope.max(axis=0)
    high = -1 / slope.min(axis=0)
    x = np.zeros_like(low)
    for _ in range(_STEPS):
        share = slope / (1 + x * slope)
        value = (frequencies * share).sum(axis=0)
        low = np.where(value > 0, x, low)
        high = np.where(value > 0, high, x)
        newton = x + value / (frequencies * share**2).sum(axis=0)
        after = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        # The largest relative change of a probability. Near an end of the bracket even a small step
        # of x changes one much.
        change = np.abs((after - x) * share).max()
        x = after
        if change < _PRECISION:
            break
    return frequencies / (1 + x * slope)


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Strength:
    """How much stronger the first player is, as far as the blocks can tell.

    After a test has stopped, this is biased towards the verdict, because lucky results make a test
    stop."""

    score: Estimate
    """The mean score of a game, 0..1."""
    elo: Estimate
    """The difference in Elo points. 0 means that it wins 1 / seats of the games, and 400 points
    more are ten times the odds. It is infinite where the score is 0 or 1."""
    normalised_elo: Estimate | None
    """None while all blocks have scored alike, because then nobody knows the standard deviation of
    a game.
    """


def strength_of(counts: np.ndarray, seats: int) -> Strength:
    """Return the strength that the blocks show, of which `counts` (K,) says how many had each
    score. Raises `ConfigError` if there are no blocks.

    The score's interval is that of a normal mean, by the variance between blocks. If all blocks
    scored the same, there is no variance. Then it is Wilson's interval for a proportion over the
    blocks (E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference",
    JASA 22, 1927). That is on the safe side, because scores from 0 to 1 never vary more than wins
    and losses with the same mean."""
    blocks = int(np.sum(counts))
    if blocks == 0:
        raise ConfigError("there are no games to judge a strength by")
    scores = np.array(possible_scores(seats), float)
    z = NormalDist().inv_cdf(0.975)
    mean = float((counts * scores).sum() / blocks)
    if np.count_nonzero(counts) == 1:
        low, high = wilson_interval(mean * blocks, blocks)
        # Rounding would turn 0 or 1 into a number close to it, whose Elo is some thousands and not
        # infinite.
        alike = Estimate(mean, min(low, mean), max(high, mean))
        return Strength(alike, _each(alike, lambda p: elo(p, seats)), None)
    deviation = math.sqrt(float((counts * (scores - mean) ** 2).sum() / blocks))
    spread = z * deviation / math.sqrt(blocks)
    score = Estimate(mean, max(0.0, mean - spread), min(1.0, mean + spread))
    t = (mean - 1 / seats) / deviation
    normalised = _SCALE * t / math.sqrt(seats)
    half = _SCALE * z / math.sqrt(seats * blocks)
    return Strength(
        score,
        _each(score, lambda p: elo(p, seats)),
        Estimate(normalised, normalised - half, normalised + half),
    )


def _each(estimate: Estimate, function: Callable[[float], float]) -> Estimate:
    return Estimate(function(estimate.value), function(estimate.low), function(estimate.high))


def elo(score: float, seats: int) -> float:
    """Return by how many Elo points a player is above `seats` - 1 copies of another if it wins the
    fraction `score`, 0..1.

    The result is infinite at 0 and 1.
    """
    if not 0 < score < 1:
        return math.copysign(math.inf, score - 0.5)
    return 400 * math.log10(score / (1 - score) * (seats - 1))


def expected_blocks(
    hypotheses: Hypotheses, seats: int, normalised_elo: float, *, ratio: float = 0.0
) -> float:
    """Return how many more blocks a test takes on average from a log-likelihood `ratio` on, if
    `normalised_elo` is true.

    This is Wald's approximation: the ratio is a Brownian motion with drift, and it ends exactly on
    a bound."""
    low, high = hypotheses.bounds
    if not low < ratio < high:
        return 0.0
    t0, t1, t = (
        value / _SCALE * math.sqrt(seats)
        for value in (hypotheses.elo0, hypotheses.elo1, normalised_elo)
    )
    variance = (t1 - t0) ** 2
    drift = (t1 - t0) * (t - (t0 + t1) / 2)
    below = ratio - low
    above = high - ratio
    steepness = 2 * drift / variance
    if abs(steepness) * (below + above) < 1e-6:
        return below * above / variance
    up = _reaches_high(steepness, below, above)
    return (up * above - (1 - up) * below) / drift


def _reaches_high(steepness: float, below: float, above: float) -> float:
    """The probability that the motion reaches its upper bound before the lower one."""
    # Beyond these limits `expm1` would overflow.
    if steepness * below > _MAX_EXPONENT:
        return 1.0
    if -steepness * above > _MAX_EXPONENT:
        return 0.0
    if steepness > 0:
        return -math.expm1(-steepness * below) / -math.expm1(-steepness * (below + above))
    return (
        math.exp(steepness * above)
        * math.expm1(steepness * below)
        / math.expm1(steepness * (below + above))
    )
