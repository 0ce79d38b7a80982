"""Normalised scores and aggregates against published figures and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import trim_mean

from envs.errors import ConfigError, UnknownNameError
from envs.procgen.games import GAMES
from envs.procgen.scores import (
    EASY,
    HARD,
    LARS_8M_ALL,
    PPO,
    bootstrap_band,
    bootstrap_interval,
    interquartile_mean,
    normalised,
    optimality_gap,
    performance_profile,
)


def test_every_game_has_its_constants() -> None:
    assert set(EASY) == set(HARD) == set(PPO) == set(GAMES)
    assert set(LARS_8M_ALL) < set(GAMES)


@pytest.mark.parametrize(
    ("column", "mean"), [("all_8m", 0.387), ("unseen_8m", 0.246), ("all_25m", 0.645), ("unseen_25m", 0.354)]
)
def test_openais_ppo_has_its_published_mean_score(column: str, mean: float) -> None:
    scores = [normalised(getattr(PPO[game], column), game) for game in GAMES]
    assert np.mean(scores) == pytest.approx(mean, abs=0.002)


@pytest.mark.parametrize(("returns", "score"), [(5, 0.0), (10, 1.0), (7.5, 0.5), (2.5, -0.5), (12.5, 1.5)])
def test_scores_are_linear_and_not_clipped(returns: float, score: float) -> None:
    assert normalised(returns, "coinrun") == pytest.approx(score)


def test_private_games_and_hard_mode_have_scores_and_others_are_named() -> None:
    assert normalised(24, "caterpillar") == 1
    assert normalised(35, "starpilot", "hard") == 1
    with pytest.raises(UnknownNameError, match="coinrun"):
        normalised(1, "coinrum")
    with pytest.raises(ConfigError, match="memory"):
        normalised(1, "maze", "memory")


@pytest.mark.parametrize("shape", [(10, 1), (5, 16), (3, 7)])
def test_the_interquartile_mean_is_scipys(shape: tuple[int, int]) -> None:
    scores = np.random.default_rng(0).normal(size=shape)
    assert interquartile_mean(scores) == pytest.approx(trim_mean(scores, 0.25, axis=None))


def test_the_gap_counts_only_what_falls_short() -> None:
    assert optimality_gap(np.array([[0.5, 3.0], [1.0, 0.0]])) == pytest.approx((0.5 + 0 + 0 + 1) / 4)


def test_the_profile_is_the_share_above_each_threshold() -> None:
    scores = np.array([[0.1, 0.2], [0.3, 0.4]])
    np.testing.assert_allclose(performance_profile(scores, np.array([0.0, 0.2, 0.35, 1.0])), [1, 0.5, 0.25, 0])


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        low, high = bootstrap_interval(generator.normal(size=(40, 1)), lambda s: float(s.mean()), samples=200)
        hits += low < 0 < high
    assert 0.88 < hits / 200 < 0.99


def test_runs_are_drawn_within_their_game() -> None:
    scores = np.array([[0.0, 10.0], [0.0, 10.0]])
    assert bootstrap_interval(scores, lambda s: float(s.mean()), samples=50) == (5, 5)


def test_aggregates_equal_rliables() -> None:
    """Figures of rliable 1.2.0 (20 000 samples; its dependence arch 7 doesn't run with our pandas 3, so it isn't called)."""
    scores = np.random.default_rng(7).normal(0.5, 0.4, size=(5, 16)).round(3)
    for statistic, value, low, high in (
        (lambda s: float(s.mean()), 0.4294375, 0.35634906, 0.50190031),
        (interquartile_mean, 0.4292, 0.36137438, 0.50232625),
        (optimality_gap, 0.57765, 0.50789875, 0.64850031),
    ):
        assert statistic(scores) == pytest.approx(value)
        assert bootstrap_interval(scores, statistic) == pytest.approx((low, high), abs=0.01)
    thresholds = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(performance_profile(scores, thresholds), [0.875, 0.725, 0.4125, 0.2125, 0.075])
    low, high = bootstrap_band(scores, lambda sample: performance_profile(sample, thresholds))
    np.testing.assert_allclose(low, [0.8125, 0.6375, 0.3125, 0.1375, 0.025], atol=0.0126)
    np.testing.assert_allclose(high, [0.9375, 0.8125, 0.5125, 0.3, 0.125], atol=0.0126)
