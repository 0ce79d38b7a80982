"""Texel's method: it finds the weights with which the evaluation predicts the results of recorded
games best.

If the evaluation gives a position s points, the predicted probability of winning is 1 / (1 + exp(-s
/ K)). First K is fitted with the present weights, then the weights are fitted with that K. The loss
is the mean of -log of the probability of what happened. So this is a logistic regression, which has
one minimum. Texel's author took squares instead. Source: P. Österlund, "Texel's Tuning Method",
2014."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from envs.common.errors import ConfigError

_STEPS = 100
_PRECISION = 1e-10
_HALVINGS = 40


@dataclass(frozen=True)
class Fit:
    """The result of a regression."""

    weights: np.ndarray
    """The weights, float64 (W,). A weight whose feature never varies stays as it was."""
    scale: float
    """The scale K, in points of the evaluation."""
    loss_before: float
    """The mean negative log-likelihood with the old weights, in nats."""
    loss: float
    """The mean negative log-likelihood with the fitted weights, in nats."""


def fit_scale(scores: np.ndarray, results: np.ndarray) -> float:
    """Return K for evaluations `scores` (N,) and `results` (N,), which are 0 lost, ½ shared, 1 won.

    Raises `ConfigError` if the scores tell nothing of the results, or tell all.
    """
    inverse = float(_regress(scores[:, None], results, np.zeros(len(scores)), np.zeros(1))[0])
    if not inverse > 0:
        raise ConfigError(
            f"the evaluation predicts nothing about these {len(results)} positions' results (1 /"
            f" K would be {inverse:.3g}); record more games, of stronger players"
        )
    return 1 / inverse


def fit_weights(
    features: np.ndarray, rest: np.ndarray, results: np.ndarray, start: np.ndarray
) -> Fit:
    """Fit the weights of `features` (N, W), beginning at `start` (W,). `rest` (N,) is the part of
    the score that stays.

    Raises `ConfigError` as `fit_scale` does.
    """
    scale = fit_scale(features @ start + rest, results)
    varies = features.std(axis=0) > 0
    fixed = rest + features[:, ~varies] @ start[~varies]
    weights = start.copy()
    weights[varies] = _regress(features[:, varies] / scale, results, fixed / scale, start[varies])
    loss_before = mean_loss((features @ start + rest) / scale, results)
    loss = mean_loss((features @ weights + rest) / scale, results)
    return Fit(weights, scale, loss_before, loss)


def _regress(
    features: np.ndarray, results: np.ndarray, offset: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return the coefficients (W,) with the least loss, by Newton's method. A step that makes it
    worse is halved.

    Raises `ConfigError` if there is no such minimum, as where some weights separate the won from
    the lost positions."""
    weights = start.astype(float)
    loss = mean_loss(features @ start + offset, results)
    for _ in range(_STEPS):
        expected = probability(features @ weights + offset)
        slope = features.T @ (results - expected)
        curvature = (features * (expected * (1 - expected))[:, None]).T @ features
        step, *_ = np.linalg.lstsq(curvature, slope, rcond=_PRECISION)
        for _ in range(_HALVINGS):
            after = mean_loss(features @ (weights + step) + offset, results)
            if after <= loss:
                break
            step = step / 2
        weights = weights + step
        gained = loss - after
        loss = after
        if gained < _PRECISION < loss:
            return weights
    raise ConfigError(
        f"the results of these {len(results)} positions leave the weights undecided; record more"
        " games"
    )


def probability(logits: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-`logits`)), without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(logits / 2)))


def mean_loss(logits: np.ndarray, results: np.ndarray) -> float:
    """Return the mean of -log of the probability of what happened, in nats. `results` (N,) lie
    between 0 and 1.
    """
    return float(np.mean(np.logaddexp(0, logits) - results * logits))
