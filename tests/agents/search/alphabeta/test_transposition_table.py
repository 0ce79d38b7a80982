from __future__ import annotations

import numpy as np
import pytest

from agents.search.alphabeta.transposition_table import (
    AT_LEAST,
    AT_MOST,
    EXACT,
    NO_MOVE,
    look_up,
    new_table,
    store,
)
from agents.search.evaluation.evaluate import WIN


@pytest.mark.parametrize("value", [0, 1, -1, 4321, -4321, 2_000_000, -2_000_000])
@pytest.mark.parametrize(
    ("depth", "bound", "move"), [(0, EXACT, 0), (56, AT_LEAST, 3), (-4, AT_MOST, 2)]
)
def test_what_was_stored_is_found(value, depth, bound, move):
    table = new_table(8)
    if abs(value) < WIN:
        store(table, np.uint64(77), value, depth, bound, move, 5)
        assert look_up(table, np.uint64(77), 9) == (value, depth, bound, move)
    assert look_up(table, np.uint64(78), 9)[3] == NO_MOVE


def test_the_newer_of_two_that_share_a_place_stays():
    table = new_table(8)
    first = np.uint64(3)
    second = np.uint64(3 + 256)
    store(table, first, 10, 1, EXACT, 1, 0)
    store(table, second, 20, 1, EXACT, 2, 0)
    assert look_up(table, first, 0)[3] == NO_MOVE
    assert look_up(table, second, 0)[0] == 20


def test_a_proven_win_counts_its_turns_from_the_position():
    table = new_table(8)
    store(table, np.uint64(1), WIN - 10, 4, EXACT, 1, 7)
    assert look_up(table, np.uint64(1), 2)[0] == WIN - 5
    store(table, np.uint64(1), 10 - WIN, 4, EXACT, 1, 7)
    assert look_up(table, np.uint64(1), 2)[0] == 5 - WIN


def test_a_row_that_two_threads_wrote_half_each_is_nobodys():
    table = new_table(8)
    halves = []
    keys = np.uint64(3), np.uint64(3 + 256)
    for key in keys:
        store(table, key, int(key), 1, EXACT, 1, 0)
        halves.append(table[3].copy())
    table[3] = halves[0][0], halves[1][1]
    assert [look_up(table, key, 0)[3] for key in keys] == [NO_MOVE, NO_MOVE]
