"""Aggregates and their intervals against scipy, closed forms and what an interval promises."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from rliable.metrics import probability_of_improvement as improvement_of_rliable
from scipy.stats import trim_mean

from agents.measure.evaluation.procgen_aggregates import (
    aggregates,
    mean_interval,
    performance_profile,
    probability_of_improvement,
)
from envs.common.errors import pip_install


@pytest.mark.parametrize("shape", [(10, 1), (5, 16), (3, 7)])
def test_the_aggregates_are_those_of_the_paper(shape: tuple[int, int]) -> None:
    scores = np.random.default_rng(0).normal(0.5, 0.6, size=shape)
    found = {one.name: one.value for one in aggregates(scores)}
    assert found["interquartile mean"] == pytest.approx(trim_mean(scores, 0.25, axis=None))
    assert found["mean"] == pytest.approx(scores.mean())
    assert found["optimality gap"] == pytest.approx(np.maximum(1 - scores, 0).mean())


def test_the_profile_is_the_share_above_each_threshold() -> None:
    scores = np.array([[0.1, 0.2], [0.3, 0.4]])
    share, low, high = performance_profile(scores, np.array([0.0, 0.2, 0.35, 1.0]))
    np.testing.assert_allclose(share, [1, 0.5, 0.25, 0])
    # The second game's runs are 0.2 and 0.4: both may be drawn as either, so above 0.35 is nobody
    # or one of two.
    np.testing.assert_allclose(low, [1, 0, 0, 0])
    np.testing.assert_allclose(high, [1, 1, 0.5, 0])


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    intervals = [mean_interval(generator.normal(size=40)) for _ in range(50)]
    assert 0.85 < np.mean([low < 0 < high for low, high in intervals]) < 0.99


def test_the_probability_of_improvement_is_the_share_of_pairs_that_win_with_ties_as_halves() -> (
    None
):
    """Agarwal et al. 2021, section 4.3: the Mann-Whitney U statistic by the number of pairs, as the
    mean over games.
    """
    rng = np.random.default_rng(3)
    ours = rng.integers(0, 4, (5, 3)) / 4.0
    theirs = rng.integers(0, 4, (3, 3)) / 4.0
    pairs = [
        (a > b) + (a == b) / 2 for game in range(3) for a in ours[:, game] for b in theirs[:, game]
    ]
    found = probability_of_improvement(ours, theirs)
    assert abs(found.value - np.mean(pairs)) < 1e-12
    assert abs(found.value - improvement_of_rliable(ours, theirs)) < 1e-12
    assert found.interval[0] < found.value < found.interval[1]
    assert probability_of_improvement(ours + 1, theirs).interval == (1.0, 1.0)


def test_runs_are_drawn_within_their_game() -> None:
    _, mean, _ = aggregates(np.array([[0.0, 10.0], [0.0, 10.0]]))
    assert (mean.name, mean.value, mean.interval) == ("mean", 5, (5, 5))


def test_of_one_run_a_game_there_is_no_interval() -> None:
    """The bootstrap has one run to draw from, so its interval would have no width and look like
    certainty.
    """
    one = np.array([[0.3, 0.9]])
    two = np.array([[0.3, 0.9], [0.5, 0.7]])
    assert [
        (a.name, pytest.approx(a.value), a.interval, a.interval_in_words) for a in aggregates(one)
    ] == [
        ("interquartile mean", 0.6, None, "-"),
        ("mean", 0.6, None, "-"),
        ("optimality gap", 0.4, None, "-"),
    ]
    for ours, theirs in ((one, two), (two, one)):
        assert probability_of_improvement(ours, theirs).interval is None
    share, low, high = performance_profile(one, np.array([0.5]))
    assert (share.tolist(), low, high) == ([0.5], None, None)


def test_the_same_scores_have_the_same_interval_and_others_draw_as_before() -> None:
    returns = np.random.default_rng(1).normal(size=50)
    np.random.seed(3)
    expected = np.random.random(2)
    np.random.seed(3)
    first = mean_interval(returns)
    assert np.random.random() == expected[0]
    assert mean_interval(returns) == first
    assert np.random.random() == expected[1]


def test_without_rliable_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['rliable'] = None; import agents.measure.evaluation.procgen"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert "MissingDependencyError: " in shown
    assert pip_install("procsnake[procgen]") in shown
