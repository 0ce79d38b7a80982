from __future__ import annotations

import numpy as np
import pytest

from agents.heuristics import RandomLegal
from agents.sampling import choose, uniforms
from envs.battlesnake import State
from envs.common.errors import ConfigError

LARGEST = 1 - 2.0**-32


@pytest.mark.parametrize("weights", [[0, 1, 1, 0], [0, 0.3, 0.4, 0], [0, 1e-30, 5e-31, 0]])
def test_what_weighs_nothing_is_never_chosen(weights):
    assert choose(np.array([weights] * 2), np.array([0.0, LARGEST])).tolist() == [1, 2]


def test_the_share_of_numbers_is_the_share_of_weight():
    grid = np.arange(1000) / 1000
    counts = np.bincount(choose(np.tile([1.0, 0.0, 2.0, 5.0], (1000, 1)), grid))
    assert counts == pytest.approx([125, 0, 250, 625])


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64])
def test_a_seed_of_numpy_is_that_of_python(kind):
    state = State(4)
    slots = np.zeros(4, np.int64)
    ours = uniforms(state, np.arange(4), slots, seed=5)
    np.testing.assert_array_equal(uniforms(state, np.arange(4), slots, seed=kind(5)), ours)
    assert RandomLegal(seed=kind(5)).act_batch(state, np.arange(4), slots).shape == (4,)


@pytest.mark.parametrize("seed", ["a", 1.5, True, None])
def test_other_seeds_are_refused(seed):
    with pytest.raises(ConfigError, match=r"seed is .*; it must be an integer"):
        uniforms(State(1), np.zeros(1, np.int64), np.zeros(1, np.int64), seed=seed)


def test_numbers_are_uniform_multiples_of_two_to_the_minus_32():
    state = State(20_000)
    drawn = uniforms(state, np.arange(20_000), np.zeros(20_000, np.int64), seed=-1)
    assert ((drawn >= 0) & (drawn <= LARGEST)).all()
    assert (drawn * 2.0**32 % 1 == 0).all()
    # Kolmogorov-Smirnov, p = 0.001.
    assert np.abs(np.sort(drawn) - (np.arange(20_000) + 0.5) / 20_000).max() < 1.95 / np.sqrt(
        20_000
    )
