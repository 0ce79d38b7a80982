"""Turns games into ratings: by Weng and Lin, as Arena does, and by Bradley and Terry, with
confidence intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from agents.measure.tournament.settings import Game
from envs.common.errors import MissingDependencyError, pip_install

ELO = 400 / np.log(10)
"""How many Elo points a unit of log-odds is."""
ARENA_MU = 25.0
ARENA_SIGMA = 8.333
ARENA_KAPPA = 1e-6
"""Arena's first μ and σ, as its database has them, and the least factor by which a game may shrink
σ².
"""
_PRIOR_DEVIATION = 4.0
"""The deviation of a strength before any game, in log-odds (700 Elo). It keeps those who never lost
at a finite strength.
"""


@dataclass(frozen=True)
class WengLin:
    """A player's rating by Weng and Lin."""

    mu: float
    sigma: float

    @property
    def ordinal(self) -> float:
        """μ − 3σ, a strength that the player almost surely has. Arena shows it and sorts by it."""
        return self.mu - 3 * self.sigma


def weng_lin(before: Sequence[WengLin], places: Sequence[int]) -> list[WengLin]:
    """Return the players' ratings after a game in which they took these places, where 1 is best and
    a shared place is a draw.

    This is algorithm 1 of Weng and Lin (JMLR 12, 2011), Bradley-Terry with full pairs, with Arena's
    settings: β is 25/6, γ is σ / c, κ is 1e-6, and σ doesn't grow between games. Raises
    `MissingDependencyError` without the package openskill."""
    try:
        from openskill.models import BradleyTerryFull
    except ImportError as error:
        raise MissingDependencyError(
            "openskill", feature="Weng-Lin ratings", install=pip_install("openskill")
        ) from error
    model = BradleyTerryFull(tau=0.0, kappa=ARENA_KAPPA)
    rated = model.rate(
        [[model.rating(one.mu, one.sigma)] for one in before],
        ranks=[float(place) for place in places],
    )
    return [WengLin(one.mu, one.sigma) for (one,) in rated]


def weng_lin_ratings(games: Sequence[Game], num_players: int) -> list[WengLin]:
    """Return the players' ratings as Arena makes them, with the games in the order of the schedule.

    Raises what `weng_lin` raises.
    """
    ratings = [WengLin(ARENA_MU, ARENA_SIGMA)] * num_players
    for game in sorted(games, key=lambda game: (game.round, game.number)):
        players = [seat.player for seat in game.seats]
        places = [seat.place for seat in game.seats]
        after = weng_lin([ratings[player] for player in players], places)
        for player, rating in zip(players, after, strict=True):
            ratings[player] = rating
    return ratings


@dataclass(frozen=True)
class BradleyTerry:
    """Strengths in Elo points, relative to the mean of all players: float64 (P,) each, and their
    covariance (P, P).
    """

    elo: np.ndarray
    covariance: np.ndarray

    def intervals(self) -> np.ndarray:
        """Return the 95 % interval of each player's strength, float64 (P, 2)."""
        spread = NormalDist().inv_cdf(0.975) * np.sqrt(np.diag(self.covariance))
        return np.stack([self.elo - spread, self.elo + spread], axis=1)


def bradley_terry(games: Sequence[Game], num_players: int) -> BradleyTerry:
    """Return maximum a-posteriori strengths from all comparisons of two players (Bradley and Terry,
    Biometrika 39, 1952).

    A draw counts as half a win for each. A wide normal prior (deviation 700 Elo) keeps the
    strengths finite. The variance is the larger one of two: the model's own, and that of the
    sandwich estimator with games as clusters, because the comparisons of one game among several
    snakes aren't independent."""
    comparisons = list[tuple[int, int, int, float]]()
    for number, game in enumerate(games):
        comparisons += [(number, *comparison) for comparison in game.comparisons()]
    if not comparisons:
        return BradleyTerry(
            np.zeros(num_players), np.eye(num_players) * (_PRIOR_DEVIATION * ELO) ** 2
        )
    which, a, b, won = map(np.array, zip(*comparisons, strict=True))
    strength = np.zeros(num_players)
    prior = np.eye(num_players) / _PRIOR_DEVIATION**2
    # Newton's method, with steps of at most 1 in each strength.
    for _ in range(100):
        expected = 1 / (1 + np.exp(strength[b] - strength[a]))
        gradient = -prior @ strength
        np.add.at(gradient, a, won - expected)
        np.add.at(gradient, b, expected - won)
        information = prior.copy()
        weight = expected * (1 - expected)
        for first, second, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            np.add.at(information, (first, second), sign * weight)
        step = np.linalg.solve(information, gradient)
        strength += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            break

    by_game = np.zeros((len(games), num_players))
    np.add.at(by_game, (which, a), won - expected)
    np.add.at(by_game, (which, b), expected - won)
    own = np.linalg.inv(information)
    sandwich = own @ (by_game.T @ by_game) @ own
    # Only differences of strengths are known, so they are taken relative to the players' mean.
    centre = np.eye(num_players) - 1 / num_players
    own = centre @ own @ centre * ELO**2
    sandwich = centre @ sandwich @ centre * ELO**2
    wider = np.sqrt(np.maximum(np.diag(sandwich) / np.maximum(np.diag(own), 1e-12), 1.0))
    return BradleyTerry(ELO * (strength - strength.mean()), own * wider[:, None] * wider)
