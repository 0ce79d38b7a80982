from __future__ import annotations

import numpy as np
import pytest

from agents.sampling import choose, uniforms
from envs.battlesnake import State

LARGEST = 1 - 2.0**-32


@pytest.mark.parametrize("weights", [[0, 1, 1, 0], [0, 0.3, 0.4, 0], [0, 1e-30, 5e-31, 0]])
def test_what_weighs_nothing_is_never_chosen(weights):
    assert choose(np.array([weights] * 2), np.array([0.0, LARGEST])).tolist() == [1, 2]


def test_the_share_of_numbers_is_the_share_of_weight():
    grid = np.arange(1000) / 1000
    counts = np.bincount(choose(np.tile([1.0, 0.0, 2.0, 5.0], (1000, 1)), grid))
    assert counts == pytest.approx([125, 0, 250, 625])


def test_numbers_are_uniform_multiples_of_two_to_the_minus_32():
    state = State(20_000)
    drawn = uniforms(state, np.arange(20_000), np.zeros(20_000, np.int64), seed=-1)
    assert ((drawn >= 0) & (drawn <= LARGEST)).all()
    assert (drawn * 2.0**32 % 1 == 0).all()
    # Kolmogorov-Smirnov, p = 0.001.
    assert np.abs(np.sort(drawn) - (np.arange(20_000) + 0.5) / 20_000).max() < 1.95 / np.sqrt(20_000)
