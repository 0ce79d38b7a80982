"""Normalised scores against published figures."""

from __future__ import annotations

import numpy as np
import pytest

from envs.common.errors import ConfigError, UnknownNameError
from envs.procgen.games import GAMES
from envs.procgen.scores import EASY, HARD, LARS_8M_ALL, PPO, normalised


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
