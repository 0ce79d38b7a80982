from __future__ import annotations

import math

import numpy as np
import pytest

from agents.measure.evaluation.anchored_elo import AnchoredGames, elo_against, win_chance


def test_chances_are_those_of_elo_for_two_and_add_up_to_one_for_four():
    assert win_chance(1400, [1000]) == pytest.approx(10 / 11)  # 400 points are odds of ten to one
    ratings = [0.0, 100.0, 250.0, -300.0]
    chances = [win_chance(own, ratings[:k] + ratings[k + 1 :]) for k, own in enumerate(ratings)]
    assert sum(chances) == pytest.approx(1)


def test_par_among_four_is_the_anchors_own_rating():
    assert elo_against([AnchoredGames(250, 1000, [120.0] * 3)]) == pytest.approx(120, abs=1)


def test_ten_to_one_among_two_is_400_points():
    assert elo_against([AnchoredGames(100_000, 110_000, [50.0])]) == pytest.approx(450, abs=1)


def test_is_finite_though_nothing_or_all_was_won():
    lost, won = (elo_against([AnchoredGames(wins, 200, [0.0])]) for wins in (0, 200))
    assert won == pytest.approx(400 * math.log10(200.5 / 0.5), abs=0.1)
    assert lost == pytest.approx(-won, abs=0.1)


def test_finds_the_rating_that_games_were_drawn_with():
    """Against two anchors at once; the estimate's error falls with the root of the number of
    games.
    """
    rng = np.random.default_rng(0)
    anchors = ([0.0] * 3, [600.0])
    errors = []
    for true in (-200.0, 150.0, 500.0):
        games = [
            AnchoredGames(rng.binomial(20_000, win_chance(true, a)), 20_000, a) for a in anchors
        ]
        errors.append(abs(elo_against(games) - true))
    assert max(errors) < 12
