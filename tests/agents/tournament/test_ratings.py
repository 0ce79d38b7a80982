from __future__ import annotations

import math

import numpy as np
import pytest

from agents.tournament.ratings import ELO, bradley_terry, openskill_ratings
from tests.agents.tournament.made import drawn, game, won

MU, SIGMA, BETA, KAPPA, TAU = 25.0, 25 / 3, 25 / 6, 0.0001, 25 / 300


def plackett_luce(ratings, places):
    """Algorithm 4 of Weng and Lin (2011), players alone: ω, δ and γ = σ/c; σ grows by τ before each game (TrueSkill)."""
    ratings = [(mu, math.hypot(sigma, TAU)) for mu, sigma in ratings]
    c = math.sqrt(sum(sigma**2 + BETA**2 for _, sigma in ratings))
    strength = [math.exp(mu / c) for mu, _ in ratings]
    sums = [sum(s for s, p in zip(strength, places) if p >= place) for place in places]
    ties = [places.count(place) for place in places]
    updated = []
    for i, (mu, sigma) in enumerate(ratings):
        omega = delta = 0.0
        for q, place in enumerate(places):
            if place <= places[i]:
                share = strength[i] / sums[q]
                omega += ((1 if q == i else 0) - share) / ties[q]
                delta += share * (1 - share) / ties[q]
        omega *= sigma**2 / c
        delta *= sigma**2 / c**2 * (sigma / c)
        updated.append((mu + omega, sigma * math.sqrt(max(1 - delta, KAPPA))))
    return updated


@pytest.mark.parametrize(
    "places", [(1, 2), (2, 1), (1, 1), (1, 2, 3), (2, 1, 3, 4), (1, 2, 2), (1, 1, 3, 3), (1, 2, 3, 4, 5, 6, 7, 8)]
)
def test_openskill_is_the_papers_algorithm(places):
    rated = openskill_ratings([game(*enumerate(places))], len(places))
    expected = plackett_luce([(MU, SIGMA)] * len(places), list(places))
    for rating, (mu, sigma) in zip(rated, expected, strict=True):
        assert rating.mu == pytest.approx(mu, abs=1e-9)
        assert rating.sigma == pytest.approx(sigma, abs=1e-9)


def test_openskill_of_a_first_duel_is_the_closed_form():
    winner, loser = openskill_ratings([won(0, 1)], 2)
    # Of two equals the winner's mean rises by half of σ² / c.
    variance = SIGMA**2 + TAU**2
    gain = variance / math.sqrt(2 * variance + 2 * BETA**2) / 2
    assert (winner.mu, loser.mu) == pytest.approx((MU + gain, MU - gain))
    assert winner.mu == pytest.approx(27.6354, abs=1e-4)
    assert winner.sigma == loser.sigma == pytest.approx(8.0659, abs=1e-4)
    assert winner.ordinal == winner.mu - 3 * winner.sigma


def test_a_draw_of_equals_changes_no_mean_and_brings_unequals_together():
    a, b = openskill_ratings([drawn(0, 1)], 2)
    assert a.mu == pytest.approx(b.mu) == pytest.approx(25)
    assert a.sigma == pytest.approx(b.sigma)
    assert a.sigma < SIGMA
    before = openskill_ratings([won(0, 1)], 2)
    after = openskill_ratings([won(0, 1), drawn(0, 1, number=1)], 2)
    assert before[0].mu - before[1].mu > after[0].mu - after[1].mu > 0


def test_openskill_goes_by_the_schedule_not_by_who_finished_first():
    games = [won(0, 1, number=0), won(1, 2, number=1), won(2, 0, round_=1)]
    assert openskill_ratings(games, 3) == openskill_ratings(games[::-1], 3)


def test_bradley_terry_of_two_is_the_log_of_the_odds():
    games = [won(0, 1, number=k) for k in range(300)] + [won(1, 0, number=k) for k in range(300, 400)]
    fitted = bradley_terry(games, 2)
    assert fitted.elo[0] - fitted.elo[1] == pytest.approx(ELO * math.log(3), rel=0.01)
    # The textbook's deviation of a log-odds: 1 / sqrt(n p (1 - p)); each is half of the difference.
    textbook = 1.96 * ELO / math.sqrt(400 * 0.75 * 0.25) / 2
    assert fitted.intervals()[0, 1] - fitted.elo[0] == pytest.approx(textbook, rel=0.02)


def test_a_draw_is_half_a_win_each():
    halves = bradley_terry([won(0, 1), won(1, 0), won(0, 1), won(0, 2), won(2, 0)], 3)
    draws = bradley_terry([drawn(0, 1), won(0, 1), drawn(0, 2)], 3)
    assert bradley_terry([drawn(0, 1)] * 9, 2).elo == pytest.approx([0, 0])
    assert np.argsort(halves.elo).tolist() == np.argsort(draws.elo).tolist()


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
    rng, covered, trials = np.random.default_rng(seats), 0, 120
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
