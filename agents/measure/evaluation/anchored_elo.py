"""Elo from games against opponents whose ratings are fixed, so that two policies that never met can
be compared.

The chance to win a game is 10^(r/400) / Σ 10^(a/400), with the sum over all who play: Bradley and
Terry's model for two players, and Luce's (1959, "Individual Choice Behavior") for the first place
among several. A win rate near 0 or 1 says little. So there are weaker and stronger anchors, some of
which are a close match for any player."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_SPAN = 4000.0
_HALVINGS = 60


class AnchoredGames(NamedTuple):
    """Games against one group of opponents."""

    wins: float
    """A first place that k players share counts as 1 / k of a win."""
    games: int
    opponents: Sequence[float]
    """The Elo rating of each opponent in such a game."""


def elo_against(groups: Sequence[AnchoredGames]) -> float:
    """Return the most likely Elo rating. It is finite, because one more game that was half won is
    added to each group.
    """

    def surplus(rating: float) -> float:
        """Wins beyond those that a rating makes us expect, which fall as the rating rises."""
        total = 0.0
        for group in groups:
            expected = (group.games + 1) * win_chance(rating, group.opponents)
            total += group.wins + 0.5 - expected
        return total

    low = min(min(group.opponents) for group in groups) - _SPAN
    high = max(max(group.opponents) for group in groups) + _SPAN
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if surplus(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def win_chance(rating: float, opponents: Sequence[float]) -> float:
    """Return the probability, 0..1, that a player wins a game against all opponents, by the Elo
    ratings of the player and the opponents.
    """
    return 1 / (1 + sum(math.exp((other - rating) * math.log(10) / 400) for other in opponents))
