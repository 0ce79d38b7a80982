"""Fits a learned evaluation to positions of self-play: logistic regression with a ridge, on top of
the hand-written score.

A position of s points is won with probability 1 / (1 + exp(-s / K)). K is fitted to the
hand-written score alone. Then weights w of the features x are fitted, for each phase of the game,
so that the hand-written score + w · x predicts the target best. Hidden units, if any are asked for,
are fitted to what this leaves unexplained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from agents.search.evaluation.evaluate import SURE
from agents.search.evaluation.learned import MOST, LearnedEvaluation
from agents.search.evaluation.learned_features import NUM_FEATURES, OWN
from agents.search.evaluation.learned_weights import MOST_UNITS, UNIT, HiddenUnit, Phase
from agents.search.tuning.self_play import SelfPlay, Views
from agents.search.tuning.texel import fit_scale, mean_loss, probability
from agents.search.tuning.unit_fit import fit_units, points_of
from envs.common.errors import ConfigError

_HELD_OUT = 10
_CURVE = (1 / 8, 1 / 4, 1 / 2, 1)
"""The shares of the games that a learning curve shows."""
_STEPS = 50
_PRECISION = 1e-9
_PIECE = 1 << 16
_PROVEN = 0.01
_LENGTH = OWN.index("length")


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """How weights are found from positions. Raises `ConfigError` for impossible values."""

    discount: float = 0.97
    """What a result is worth less for each turn that is left until the game ends. Early positions
    tell little of it.
    """
    search_share: float = 0.5
    """The share of the search's score in the target. The result has the rest, where there is
    one.
    """
    ridge: float = 30.0
    """The penalty on the square of each weight, for features of variance 1, in positions' nats."""
    phases: int = 3
    """The number of phases. They are split by the sum of both lengths, with as many positions in
    each.
    """
    units: int = 0
    """The number of hidden units."""
    epochs: int = 40
    """How often the fit of the hidden units sees each position."""

    def __post_init__(self) -> None:
        shares_are_possible = 0 < self.discount <= 1 and 0 <= self.search_share <= 1
        counts_are_possible = (
            1 <= self.phases <= 16 and 0 <= self.units <= MOST_UNITS and self.epochs >= 1
        )
        if not shares_are_possible or self.ridge <= 0 or not counts_are_possible:
            raise ConfigError(
                f"{self} can't be used: shares lie between 0 and 1, the ridge above 0, the phases"
                f" between 1 and 16, the units between 0 and {MOST_UNITS}, the epochs above 0"
            )


@dataclass(frozen=True)
class Learned:
    """A fitted evaluation, with the mean loss on the games that were held out of the fit, in
    nats.
    """

    evaluation: LearnedEvaluation
    scale: float
    """K, in points."""
    games: int
    positions: int
    loss_before: float
    """The loss of the hand-written score alone."""
    learning_curve: tuple[tuple[int, float], ...]
    """The numbers of positions that were fitted, and the losses with these corrections, rounded as
    in the file. The last ones are the evaluation's."""
    least_loss: float
    """The loss of the targets themselves: no evaluation can have less."""

    @property
    def loss(self) -> float:
        """The loss with the evaluation's correction."""
        return self.learning_curve[-1][1]


def targets(views: Views, fitting: Fitting, search_scale: float) -> np.ndarray:
    """Return the target of each position, float64 (N,), from 0 (lost) to 1 (won)."""
    searched = probability(views.search / search_scale)
    worth = 0.5 + (views.result - 0.5) * fitting.discount ** views.turns_left.astype(float)
    blended = (1 - fitting.search_share) * worth + fitting.search_share * searched
    blended = np.where(np.isnan(views.result), searched, blended)
    proven = np.where(views.search > 0, 1 - _PROVEN, _PROVEN)
    return np.where(np.abs(views.search) > SURE, proven, blended)


def learn(views: Views, self_play: SelfPlay, fitting: Fitting) -> Learned:
    """Fit an evaluation. Every tenth game is held out, to measure the loss.

    Raises `ConfigError` for too few positions.
    """
    held_out = views.game % _HELD_OUT == _HELD_OUT - 1
    if min(held_out.sum(), (~held_out).sum()) < NUM_FEATURES:
        raise ConfigError(
            f"{len(held_out)} positions are too few to learn {NUM_FEATURES} weights from; play more"
            " games"
        )
    # Step 1. What is a point of the search's score worth, by the results of the games?
    has_both = (np.abs(views.search) <= SURE) & ~np.isnan(views.result)
    results = views.result[has_both].astype(float)
    search_scale = fit_scale(views.search[has_both].astype(float), results)
    # Step 2. The targets, and what a point of the hand-written score is worth by them.
    target = targets(views, fitting, search_scale)
    hand = views.hand.astype(float)
    scale = fit_scale(hand[~held_out], target[~held_out])
    # Step 3. Fits to more and more of the games. The last one has all of them.
    unseen = views.select(held_out)
    unseen_target = target[held_out]
    curve = []
    for used in _growing_parts(views.game, ~held_out):
        seen = views.select(used)
        evaluation = _fitted(seen, target[used], self_play, fitting, scale)
        # Step 4. The loss on the games that were held out.
        after = unseen.hand + corrections(evaluation, unseen)
        curve.append((len(seen.game), mean_loss(after / scale, unseen_target)))
    learned = Learned(
        evaluation=evaluation,
        scale=scale,
        games=len(np.unique(views.game)),
        positions=len(held_out),
        loss_before=mean_loss(unseen.hand.astype(float) / scale, unseen_target),
        learning_curve=tuple(curve),
        least_loss=float(_entropy(unseen_target).mean()),
    )
    return _with_training(learned, self_play, fitting)


def _entropy(target: np.ndarray) -> np.ndarray:
    """Return the least possible loss at each target, in nats."""
    won = target * np.log(target.clip(1e-12))
    lost = (1 - target) * np.log((1 - target).clip(1e-12))
    return -(won + lost)


def _with_training(learned: Learned, self_play: SelfPlay, fitting: Fitting) -> Learned:
    """Return `learned` with a record of its training in the file."""
    names = (
        "games",
        "positions",
        "scale",
        "loss_before",
        "learning_curve",
        "loss",
        "least_loss",
    )
    training: dict[str, Any] = {
        "self_play": asdict(self_play),
        "fitting": asdict(fitting),
        **{name: getattr(learned, name) for name in names},
        "accepted": False,
    }
    return replace(learned, evaluation=replace(learned.evaluation, training=training))


def _growing_parts(game: np.ndarray, is_used: np.ndarray) -> Iterator[np.ndarray]:
    """Yield which positions belong to an eighth, a quarter, a half and all of the games, bool (N,).
    Parts with fewer positions than weights are left out.
    """
    games = np.unique(game)
    for share in _CURVE:
        last = games[max(0, round(len(games) * share) - 1)]
        part = is_used & (game <= last)
        if share == 1 or part.sum() >= NUM_FEATURES:
            yield part


def _fitted(
    views: Views, target: np.ndarray, self_play: SelfPlay, fitting: Fitting, scale: float
) -> LearnedEvaluation:
    """Fit the weights of each phase and the hidden units, so that the score divided by `scale`
    predicts `target` (N,).
    """
    evaluation = LearnedEvaluation(
        width=self_play.width,
        height=self_play.height,
        phases=_phases(views, target, fitting, scale),
    )
    if fitting.units:
        offset = (views.hand + corrections(evaluation, views)) / scale
        units = _units(views.features, target, offset, fitting, scale)
        evaluation = replace(evaluation, units=units)
    return evaluation


def _phases(views: Views, target: np.ndarray, fitting: Fitting, scale: float) -> tuple[Phase, ...]:
    """Fit the weights of each phase on top of the hand-written score."""
    offset = views.hand / scale
    lengths = sum_of_lengths(views)
    shares = np.arange(1, fitting.phases) / fitting.phases
    ends = sorted({int(end) for end in np.quantile(lengths, shares)})
    phases = []
    # The phase of a position is the number of ends that lie below it.
    phase_of = np.searchsorted(ends, lengths)
    for number, end in enumerate([*ends, None]):
        rows = phase_of == number
        weights = ridge_regression(views.features[rows], target[rows], offset[rows], fitting.ridge)
        phases.append(Phase.of(end, [round(weight) for weight in weights * scale * UNIT]))
    return tuple(phases)


def _units(
    features: np.ndarray, target: np.ndarray, offset: np.ndarray, fitting: Fitting, scale: float
) -> tuple[HiddenUnit, ...]:
    """Fit the hidden units to `target` (N,), where the linear evaluation has the logits `offset`
    (N,).
    """
    mean, deviation = _mean_and_deviation(features)
    return fit_units(
        features,
        target,
        offset,
        units=fitting.units,
        epochs=fitting.epochs,
        scale=scale,
        mean=mean,
        deviation=deviation,
    )


def ridge_regression(
    features: np.ndarray, target: np.ndarray, offset: np.ndarray, ridge: float
) -> np.ndarray:
    """Return the weights w, float64 (F,), for which the logits `offset` + `features` @ w predict
    `target` (N,) best.

    The loss is the sum of -log of the likelihood, plus `ridge` / 2 times the sum of the squares of
    w in units in which each feature has variance 1. A feature that never varies is penalised in its
    own unit. Newton's method finds the only minimum."""
    _, unit = _mean_and_deviation(features)
    pieces = _pieces(features)
    weights = np.zeros(features.shape[1])
    for _ in range(_STEPS):
        slope = -ridge * weights
        curvature = ridge * np.eye(len(weights))
        for piece in pieces:
            scaled = features[piece] / unit
            expected = probability(scaled @ weights + offset[piece])
            slope += scaled.T @ (target[piece] - expected)
            curvature += (scaled * (expected * (1 - expected))[:, None]).T @ scaled
        step = np.linalg.solve(curvature, slope)
        weights = weights + step
        if np.abs(step).max() < _PRECISION:
            break
    return weights / unit


def _mean_and_deviation(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each feature, float64 (F,); 1 in place of a
    deviation of 0.
    """
    pieces = _pieces(features)
    count = max(1, len(features))
    mean = sum(features[piece].sum(axis=0, dtype=float) for piece in pieces) / count
    squares = sum(((features[piece] - mean) ** 2).sum(axis=0) for piece in pieces)
    deviation = np.sqrt(squares / count)
    return mean, np.where(deviation > 0, deviation, 1.0)


def _pieces(features: np.ndarray) -> list[slice]:
    """Return the pieces of the positions that are computed at once: ten million as float64 would
    take gigabytes.
    """
    return [slice(begin, begin + _PIECE) for begin in range(0, len(features), _PIECE)]


def sum_of_lengths(views: Views) -> np.ndarray:
    """Return the sum of both snakes' lengths, int64 (N,), which determines the phase."""
    return views.features[:, _LENGTH].astype(np.int64) + views.features[:, len(OWN) + _LENGTH]


def corrections(evaluation: LearnedEvaluation, views: Views) -> np.ndarray:
    """Return the points that an evaluation adds to each position, int64 (N,), as the search
    computes them.
    """
    ends = np.array([phase.up_to for phase in evaluation.phases[:-1]], np.int64)
    weights = np.array([phase.weights for phase in evaluation.phases], np.int64)
    phase_of = np.searchsorted(ends, sum_of_lengths(views))
    points = np.zeros(len(views.features), np.int64)
    for piece in _pieces(views.features):
        features = views.features[piece]
        points[piece] = (weights[phase_of[piece]] * features).sum(axis=1)
        if evaluation.units:
            points[piece] += points_of(evaluation.units, features)
    return (points // UNIT).clip(-MOST, MOST)
