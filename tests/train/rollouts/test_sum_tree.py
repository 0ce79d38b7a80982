from __future__ import annotations

import numpy as np
import pytest

from train.rollouts.sum_tree import SumTree


@pytest.mark.parametrize("size", [1, 2, 3, 64, 1000])
def test_draws_are_the_inverse_of_the_cumulative_sum(size):
    rng = np.random.default_rng(size)
    priorities = rng.random(size) * (rng.random(size) < 0.7)
    priorities[rng.integers(size)] = 0.5
    tree = SumTree(size)
    tree[np.arange(size)] = priorities
    assert tree.total == pytest.approx(priorities.sum())
    uniforms = rng.random(2000)
    expected = np.searchsorted(np.cumsum(priorities), uniforms * priorities.sum(), side="right")
    cells = tree.draw(uniforms)
    assert (priorities[cells] > 0).all()
    # Sums in another order may round a position over a border, but no further.
    assert (cells == expected).mean() > 0.999


def test_cells_of_priority_zero_are_never_drawn_even_at_the_very_end():
    tree = SumTree(7)
    tree[np.array([2, 4])] = 0.1
    assert set(tree.draw(np.array([0.0, 0.49, 0.51, 1 - 1e-16, 1.0])).tolist()) == {2, 4}


def test_rounding_errors_do_not_pile_up():
    rng = np.random.default_rng(0)
    tree = SumTree(100)
    for _ in range(2000):
        tree[rng.integers(0, 100, 50)] = rng.random(50) * 10.0 ** rng.integers(-8, 8)
    leaves = tree[np.arange(100)]
    assert tree.total == pytest.approx(leaves.sum(), rel=1e-12)


def test_the_last_of_several_priorities_of_a_cell_counts():
    tree = SumTree(4)
    tree[np.array([1, 1, 1])] = np.array([5.0, 7.0, 3.0])
    assert tree.total == 3.0
