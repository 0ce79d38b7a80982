"""Texel's method against planted weights, a closed form, and another library's optimiser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from agents.search.tuning.texel import fit_scale, fit_weights
from envs.common.errors import ConfigError


def planted(num, weights, scale, seed):
    """Features, and results as often won as the weights say."""
    random = np.random.default_rng(seed)
    features = random.normal(0, 10, (num, len(weights)))
    chance = 1 / (1 + np.exp(-(features @ weights) / scale))
    return features, (random.random(num) < chance).astype(float)


def loss(logits, results):
    return np.mean(np.logaddexp(0, logits) - results * logits)


def test_the_scale_of_one_score_is_that_of_its_odds():
    # 75 % of positions with +300 and 25 % of those with -300 are won, so 300 / K = ln 3.
    scores = np.repeat([300.0, -300.0], 400)
    results = np.concatenate([np.arange(400) < 300, np.arange(400) < 100]).astype(float)
    assert fit_scale(scores, results) == pytest.approx(300 / math.log(3), rel=1e-6)


def test_shared_wins_count_half():
    scores = np.array([100.0, 100.0, -100.0, -100.0])
    assert fit_scale(scores, np.array([1.0, 0.5, 0.5, 0.0])) == pytest.approx(
        100 / math.log(3), rel=1e-6
    )


def test_planted_weights_are_recovered():
    weights = np.array([6.0, 120.0, 30.0])
    features, results = planted(60_000, weights, 500.0, 3)
    start = np.array([9.0, 60.0, 45.0])
    fit = fit_weights(features, np.zeros(len(features)), results, start)
    # Weights and scale are known up to a common factor, which the start decides.
    chance = 1 / (1 + np.exp(-(features @ weights) / 500))
    errors = np.sqrt(
        np.diag(np.linalg.inv((features * (chance * (1 - chance))[:, None]).T @ features))
    )
    assert (np.abs(fit.weights / fit.scale - weights / 500) < 4 * errors).all()
    assert (4 * errors < 0.5 * weights / 500).all()
    assert fit.loss < fit.loss_before


def test_it_is_where_scipys_optimiser_ends():
    features, results = planted(3000, np.array([4.0, -20.0, 11.0]), 200.0, 8)
    rest = np.random.default_rng(1).normal(0, 50, 3000)
    start = np.array([4.0, -15.0, 8.0])
    fit = fit_weights(features, rest, results, start)
    peer = minimize(
        lambda w: loss((features @ w + rest) / fit.scale, results),
        start,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert fit.weights == pytest.approx(peer.x, rel=1e-3, abs=1e-2)
    assert fit.loss == pytest.approx(peer.fun, abs=1e-9)
    scale = minimize(
        lambda k: loss((features @ start + rest) * k[0], results),
        [0.001],
        method="Nelder-Mead",
        options={"xatol": 1e-9},
    )
    assert fit.scale == pytest.approx(1 / scale.x[0], rel=1e-3)


def test_a_weight_whose_feature_never_varies_stays():
    features, results = planted(2000, np.array([6.0, 3.0]), 40.0, 4)
    features[:, 1] = 2.0
    fit = fit_weights(features, np.zeros(2000), results, np.array([6.0, 17.0]))
    assert fit.weights[1] == 17.0
    assert fit.weights[0] != 6.0


def test_results_that_the_evaluation_does_not_foretell_are_told():
    with pytest.raises(ConfigError, match="predicts nothing"):
        fit_scale(np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.0, 1.0, 0.0, 1.0]) * 0.5 + 0.25)


def test_weights_that_separate_won_from_lost_have_no_best():
    scores = np.array([1.0, 2.0, -1.0, -2.0])
    with pytest.raises(ConfigError, match="undecided"):
        fit_scale(scores, np.array([1.0, 1.0, 0.0, 0.0]))
