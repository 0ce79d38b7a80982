"""SPSA against what is known: fishtest's formulas, and objectives whose best point was planted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agents.search.tuning.parameters import Parameter
from agents.search.tuning.spsa import Spsa


def parameter(name="x", **values) -> Parameter:
    return Parameter(
        **{
            "name": name,
            "start": 50,
            "low": 0,
            "high": 100,
            "is_integer": False,
            "c_end": 4,
            **values,
        }
    )


def test_the_schedule_is_fishtests():
    one = parameter(c_end=4, r_end=0.002)
    spsa = Spsa([one], pairs=20_000, seed=0)
    # As fishtest has it: c = c_end · N^γ, a = r_end · c_end² · (A + N)^α; in pair k, c / k^γ and a
    # / (A + k)^α.
    c = 4 * 20_000**0.101
    a = 0.002 * 4**2 * (2_000 + 20_000) ** 0.602
    for k in (1, 2, 777, 20_000):
        assert spsa.c(k)[0] == pytest.approx(c / k**0.101, rel=1e-12)
        assert spsa.a(k)[0] == pytest.approx(a / (2_000 + k) ** 0.602, rel=1e-12)
    assert spsa.c(20_000)[0] == pytest.approx(4)
    assert spsa.a(20_000)[0] / spsa.c(20_000)[0] == pytest.approx(0.002 * 4)


def test_a_step_is_gain_over_move_times_result_towards_the_better_side():
    spsa = Spsa([parameter("x"), parameter("y", c_end=1, r_end=0.1)], pairs=100, seed=3)
    theta = spsa.start
    sides = spsa.sides(theta, 7)
    flips = np.sign(sides.plus - theta)
    assert np.allclose(np.abs(sides.plus - theta), spsa.c(7))
    assert np.allclose(sides.plus + sides.minus, 2 * theta)
    for result in (-2, -1, 0, 1, 2):
        expected = theta + spsa.a(7) / spsa.c(7) * result * flips
        assert np.allclose(spsa.step(theta, 7, result), expected)


def test_coins_are_fair_and_belong_to_the_pair():
    spsa = Spsa([parameter("x"), parameter("y")], pairs=4000, seed=1)
    flips = np.array([np.sign(spsa.sides(spsa.start, k).plus - spsa.start) for k in range(1, 4001)])
    # Four standard deviations of a fair coin's mean, and of the product of two independent ones.
    assert np.abs(flips.mean(axis=0)).max() < 4 / math.sqrt(4000)
    assert abs((flips[:, 0] * flips[:, 1]).mean()) < 4 / math.sqrt(4000)
    again = Spsa([parameter("x"), parameter("y")], pairs=4000, seed=1)
    assert (again.sides(again.start, 99).plus == spsa.sides(spsa.start, 99).plus).all()


def test_integers_are_rounded_so_that_their_mean_is_the_value():
    start = np.array([50.3])
    lower = []
    upper = []
    for seed in range(4000):
        sides = Spsa([parameter(is_integer=True, start=50.3, c_end=0.5)], pairs=1, seed=seed).sides(
            start, 1
        )
        low, high = sorted([sides.plus[0], sides.minus[0]])
        assert low == np.floor(low)
        assert high - low == 1
        lower.append(low)
        upper.append(high)
    # 50.3 ± 0.5, within four standard deviations of the mean.
    assert np.mean(lower) == pytest.approx(49.8, abs=4 * 0.5 / math.sqrt(4000))
    assert np.mean(upper) == pytest.approx(50.8, abs=4 * 0.5 / math.sqrt(4000))


def test_nothing_leaves_its_range():
    spsa = Spsa([parameter(start=99, is_integer=True, c_end=20, r_end=1)], pairs=50, seed=2)
    theta = spsa.start
    for k in range(1, 51):
        sides = spsa.sides(theta, k)
        assert 0 <= min(sides.plus[0], sides.minus[0]) <= max(sides.plus[0], sides.minus[0]) <= 100
        theta = spsa.step(theta, k, 2)
        assert 0 <= theta[0] <= 100


def test_the_best_point_of_a_noisy_quadratic_is_found():
    best = np.array([80.0, 30.0, 55.0])
    random = np.random.default_rng(7)
    ones = [parameter(name, r_end=0.05) for name in "xyz"]
    spsa = Spsa(ones, pairs=4000, seed=5)

    def height(x):
        return -0.002 * ((x - best) ** 2).sum()

    theta = spsa.start
    for k in range(1, 4001):
        sides = spsa.sides(theta, k)
        theta = spsa.step(
            theta, k, height(sides.plus) - height(sides.minus) + random.normal(0, 0.5)
        )
    assert np.abs(theta - best).max() < 2.5
    assert np.abs(spsa.start - best).max() == 30


def test_the_best_point_is_found_by_games_won_and_lost():
    # A snake's strength falls as the square of the distance from a planted point; a game is won by
    # the Elo formula.
    best = np.array([85.0, 20.0])
    random = np.random.default_rng(1)
    spsa = Spsa(
        [parameter("x", c_end=8, r_end=0.02), parameter("y", c_end=8, r_end=0.02, is_integer=True)],
        pairs=6000,
        seed=1,
    )

    def elo(x):
        return -0.2 * ((x - best) ** 2).sum()

    theta = spsa.start
    for k in range(1, 6001):
        sides = spsa.sides(theta, k)
        chance = 1 / (1 + 10 ** ((elo(sides.minus) - elo(sides.plus)) / 400))
        theta = spsa.step(theta, k, int(2 * (random.random(2) < chance).sum() - 2))
    assert np.abs(theta - best).max() < 9
    # What is left of 425 Elo to gain.
    assert elo(theta) > -30
