"""Normalised scores against published figures."""

from __future__ import annotations

import numpy as np
import pytest

from envs.common.errors import ConfigError, UnknownNameError
from envs.procgen.games import GAMES
from envs.procgen.scores import EASY, HARD, LARS_8M_ALL, PPO, PRIVATE, normalised

# Game, then blind and highest return in easy mode, then in hard mode: Cobbe et al. 2020, appendix
# C.
PUBLISHED = """
bigfish    1    40    0    40
bossfight  0.5  13    0.5  13
caveflyer  3.5  12    2    13.4
chaser     0.5  13    0.5  14.2
climber    2    12.6  1    12.6
coinrun    5    10    5    10
dodgeball  1.5  19    1.5  19
fruitbot   -1.5 32.4  -0.5 27.2
heist      3.5  10    2    10
jumper     1    10    1    10
leaper     1.5  10    1.5  10
maze       5    10    4    10
miner      1.5  13    1.5  20
ninja      3.5  10    2    10
plunder    4.5  30    3    30
starpilot  2.5  64    1.5  35
"""
PUBLISHED_PRIVATE = """
caterpillar 8.25 24
gemjourney  1.1  16
hovercraft  0.2  18
safezone    0.2  10
"""


def rows(table: str, column: int) -> dict[str, tuple[float, ...]]:
    """The table's games, each with the two numbers that begin at a column."""
    lines = [line.split() for line in table.strip().splitlines()]
    return {line[0]: tuple(map(float, line[column : column + 2])) for line in lines}


def test_the_constants_are_those_that_were_published() -> None:
    assert rows(PUBLISHED, 1) == EASY
    assert rows(PUBLISHED, 3) == HARD
    assert rows(PUBLISHED_PRIVATE, 1) == PRIVATE


def test_every_game_has_its_constants() -> None:
    assert set(EASY) == set(HARD) == set(PPO) == set(GAMES)
    assert set(LARS_8M_ALL) < set(GAMES)


@pytest.mark.parametrize(
    ("column", "mean"),
    [("all_8m", 0.387), ("unseen_8m", 0.246), ("all_25m", 0.645), ("unseen_25m", 0.354)],
)
def test_openais_ppo_has_its_published_mean_score(column: str, mean: float) -> None:
    scores = [normalised(getattr(PPO[game], column), game) for game in GAMES]
    assert np.mean(scores) == pytest.approx(mean, abs=0.002)


@pytest.mark.parametrize(
    ("returns", "score"), [(5, 0.0), (10, 1.0), (7.5, 0.5), (2.5, -0.5), (12.5, 1.5)]
)
def test_scores_are_linear_and_not_clipped(returns: float, score: float) -> None:
    assert normalised(returns, "coinrun") == pytest.approx(score)


def test_private_games_and_hard_mode_have_scores_and_others_are_named() -> None:
    assert normalised(24, "caterpillar") == 1
    assert normalised(35, "starpilot", "hard") == 1
    with pytest.raises(UnknownNameError, match="coinrun"):
        normalised(1, "coinrum")
    with pytest.raises(ConfigError, match="memory"):
        normalised(1, "maze", "memory")
