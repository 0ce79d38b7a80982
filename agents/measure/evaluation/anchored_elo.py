"""Elo from games against opponents whose ratings are fixed, so that two policies that never met can
be compared.

The chance to win a game is 10^(r/400) / Σ 10^(a/400), with the sum over all who play: Bradley and
Terry's model for two players, and Luce's (1959, "Individual Choice Behavior") for the first place
among several. A win rate says less and less the nearer it comes to 0 or 1; games against weaker and
stronger anchors together say as much everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_SPAN = 4000.0
_HALVINGS = 60


class AnchoredGames(NamedTuple):
    """Games against one group of opponents."""

    won: float
    """Games won; a first place that k players share counts as 1 / k of a win."""
    games: int
    opponents: Sequence[float]
    """The Elo rating of each opponent in such a game."""


def elo_against(groups: Sequence[AnchoredGames]) -> float:
    """Return the most likely Elo rating. Each group counts as one game more that was half won, so
    that it is finite.
    """

    def surplus(rating: float) -> float:
        """Wins beyond those that a rating makes us expect; it falls as the rating rises."""
        return sum(
            won + 0.5 - (games + 1) * win_chance(rating, opponents)
            for won, games, opponents in groups
        )

    low = min(min(group.opponents) for group in groups) - _SPAN
    high = max(max(group.opponents) for group in groups) + _SPAN
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if surplus(middle) > 0 else (low, middle)
    return (low + high) / 2


def win_chance(rating: float, opponents: Sequence[float]) -> float:
    """Return the probability, 0..1, that a player with that Elo rating wins against opponents with
    theirs.
    """
    return 1 / (1 + sum(math.exp((other - rating) * math.log(10) / 400) for other in opponents))
