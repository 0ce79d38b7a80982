from __future__ import annotations

import math

import numpy as np
import pytest

from agents.measure.tournament.ratings import (
    ELO,
    WengLin,
    bradley_terry,
    weng_lin,
    weng_lin_ratings,
)
from tests.agents.measure.tournament.made import drawn, game, won

MU = 25.0
SIGMA = 8.333
BETA = 25 / 6
KAPPA = 1e-6
FRESH = WengLin(25.0, 25 / 3)


def bradley_terry_full(ratings, places):
    """Algorithm 1 of Weng and Lin (2011), players alone: ω, δ and γ = σ/c over all pairs."""
    updated = []
    for i, (mu, sigma) in enumerate(ratings):
        omega = delta = 0.0
        for q, (other_mu, other_sigma) in enumerate(ratings):
            if q != i:
                c = math.sqrt(sigma**2 + other_sigma**2 + 2 * BETA**2)
                p = 1 / (1 + math.exp((other_mu - mu) / c))
                score = 1.0 if places[q] > places[i] else 0.5 if places[q] == places[i] else 0.0
                omega += sigma**2 / c * (score - p)
                delta += sigma / c * (sigma / c) ** 2 * p * (1 - p)
        updated.append((mu + omega, sigma * math.sqrt(max(1 - delta, KAPPA))))
    return updated


def test_a_sequence_of_games_is_rated_by_the_papers_algorithm():
    """Five players in 60 games of two to five, with ties; Arena's own parameters."""
    rng = np.random.default_rng(5)
    expected = [(MU, SIGMA)] * 5
    games = []
    for number in range(60):
        group = rng.choice(5, rng.integers(2, 6), replace=False).tolist()
        places = [int(place) for place in rng.integers(1, 4, len(group))]
        games.append(game(*zip(group, places, strict=True), number=number))
        for player, rating in zip(
            group, bradley_terry_full([expected[p] for p in group], places), strict=True
        ):
            expected[player] = rating
    for rating, (mu, sigma) in zip(weng_lin_ratings(games, 5), expected, strict=True):
        assert rating.mu == pytest.approx(mu, abs=1e-6)
        assert rating.sigma == pytest.approx(sigma, abs=1e-6)


# What the crate skillratings, by which Arena rates, has in its own tests of `weng_lin`
# (src/weng_lin.rs, commit 018ee29).
CHAMPION = WengLin(42, 1.3)
PUBLISHED_DUELS = [
    (FRESH, (1, 2), (27.63523138347365, 8.065506316323548, 22.36476861652635, 8.065506316323548)),
    (
        CHAMPION,
        (1, 2),
        (42.026412401802894, 1.2998230532770783, 23.91467776944046, 8.029022445649298),
    ),
    (
        CHAMPION,
        (2, 1),
        (41.86215399828694, 1.2998230532770783, 30.66428343659835, 8.029022445649298),
    ),
    (
        CHAMPION,
        (1, 1),
        (41.94428320004492, 1.2998230532770783, 27.289480603019403, 8.029022445649298),
    ),
]
# What openskill.py has in its tests of BradleyTerryFull: fresh players who come in the order of the
# list.
PUBLISHED_FREE_FOR_ALLS = [
    [
        (30.2704627669473, 7.788474807872566),
        (25.0, 7.788474807872566),
        (19.7295372330527, 7.788474807872566),
    ],
    [
        (32.90569415042095, 7.5012190693964005),
        (27.63523138347365, 7.5012190693964005),
        (22.36476861652635, 7.5012190693964005),
        (17.09430584957905, 7.5012190693964005),
    ],
]


@pytest.mark.parametrize(("first", "places", "published"), PUBLISHED_DUELS)
def test_duels_are_rated_as_arenas_library_rates_them(first, places, published):
    after = [
        number
        for rating in weng_lin([first, FRESH], places)
        for number in (rating.mu, rating.sigma)
    ]
    assert after == pytest.approx(published, abs=1e-9)


@pytest.mark.parametrize("published", PUBLISHED_FREE_FOR_ALLS)
def test_games_of_several_are_rated_as_published(published):
    rated = weng_lin([FRESH] * len(published), range(1, len(published) + 1))
    assert [rating.mu for rating in rated] == pytest.approx([mu for mu, _ in published], abs=1e-9)
    assert [rating.sigma for rating in rated] == pytest.approx(
        [sigma for _, sigma in published], abs=1e-9
    )


def test_a_rating_is_shown_as_arena_shows_it():
    assert WengLin(30.0, 6.0).ordinal == 12.0
    assert weng_lin_ratings([], 1)[0].ordinal == pytest.approx(0.001)


def test_a_draw_of_equals_changes_no_mean_and_brings_unequals_together():
    a, b = weng_lin_ratings([drawn(0, 1)], 2)
    assert a.mu == pytest.approx(b.mu) == pytest.approx(25)
    assert a.sigma == pytest.approx(b.sigma)
    assert a.sigma < SIGMA
    before = weng_lin_ratings([won(0, 1)], 2)
    after = weng_lin_ratings([won(0, 1), drawn(0, 1, number=1)], 2)
    assert before[0].mu - before[1].mu > after[0].mu - after[1].mu > 0


def test_weng_lin_goes_by_the_schedule_not_by_who_finished_first():
    games = [won(0, 1, number=0), won(1, 2, number=1), won(2, 0, round_=1)]
    assert weng_lin_ratings(games, 3) == weng_lin_ratings(games[::-1], 3)


def test_bradley_terry_of_two_is_the_log_of_the_odds():
    games = [won(0, 1, number=k) for k in range(300)] + [
        won(1, 0, number=k) for k in range(300, 400)
    ]
    fitted = bradley_terry(games, 2)
    assert fitted.elo[0] - fitted.elo[1] == pytest.approx(ELO * math.log(3), rel=0.01)
    # The textbook's deviation of a log-odds: 1 / sqrt(n p (1 - p)); each is half of the difference.
    textbook = 1.96 * ELO / math.sqrt(400 * 0.75 * 0.25) / 2
    assert fitted.intervals()[0, 1] - fitted.elo[0] == pytest.approx(textbook, rel=0.02)


def test_a_draw_is_half_a_win_each():
    draws = bradley_terry([drawn(0, 1)] * 2 + [won(0, 1)] * 2, 2)
    halves = bradley_terry([won(0, 1)] * 3 + [won(1, 0)], 2)
    assert draws.elo == pytest.approx(halves.elo)
    assert draws.elo[0] - draws.elo[1] == pytest.approx(ELO * math.log(3), rel=0.05)
    assert bradley_terry([drawn(0, 1)] * 9, 2).elo == pytest.approx([0, 0])


def test_a_draw_within_a_game_of_four_is_half_a_win_each():
    """The first wins, the next two share a place, the last loses; then the same once with each
    order of the two.
    """
    draws = bradley_terry([game((0, 1), (1, 2), (2, 2), (3, 4))] * 2 + [won(1, 2)], 4)
    orders = [game((0, 1), (1, 2), (2, 3), (3, 4)), game((0, 1), (1, 3), (2, 2), (3, 4))]
    halves = bradley_terry([*orders, won(1, 2)], 4)
    assert draws.elo == pytest.approx(halves.elo)


def plant(strengths, rng, num_games, seats):
    """Games of exponential races: Plackett-Luce, whose pairs are Bradley-Terry."""
    games = []
    for k in range(num_games):
        group = rng.choice(len(strengths), seats, replace=False)
        order = np.argsort(rng.exponential(1 / np.exp(strengths[group])))
        places = np.empty(seats, int)
        places[order] = np.arange(1, seats + 1)
        games.append(game(*zip(group.tolist(), places.tolist()), number=k))
    return games


@pytest.mark.parametrize("seats", [2, 4])
def test_planted_strengths_are_recovered_and_intervals_cover_them(seats):
    strengths = np.array([1.0, 0.4, 0.0, -0.5, -0.9])
    rng = np.random.default_rng(seats)
    covered = 0
    trials = 60
    for _ in range(trials):
        fitted = bradley_terry(plant(strengths, rng, 150, seats), 5)
        low, high = (fitted.intervals() / ELO).T
        covered += ((low <= strengths) & (strengths <= high)).sum()
    assert 0.91 <= covered / (5 * trials) <= 0.985
    much = bradley_terry(plant(strengths, rng, 6000, seats), 5)
    np.testing.assert_allclose(much.elo / ELO, strengths, atol=0.12)


def test_who_never_lost_has_a_rating_all_the_same():
    fitted = bradley_terry([won(0, 1, number=k) for k in range(20)], 2)
    assert np.isfinite(fitted.elo).all()
    assert fitted.intervals()[0, 0] > 0
    nobody = bradley_terry([], 3)
    assert (nobody.elo == 0).all()
