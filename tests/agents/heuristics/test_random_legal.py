from __future__ import annotations

import numpy as np
from scipy.stats import chisquare

from agents.heuristics import RandomLegal
from envs.battlesnake.state import DOWN, LEFT, RIGHT, UP
from tests.agents.boards import board

DRAWS = 9000


def many_games_like(state, copies=DRAWS):
    many = state.select(np.zeros(copies, np.int64))
    many.seed(3)
    return many


def moves_of(state, slot=0):
    boards = np.arange(state.num_boards)
    return RandomLegal(seed=1).act_batch(state, boards, np.full(len(boards), slot))


def test_is_uniform_over_the_safe_moves():
    # Heading right in the open: back is the neck, the other three are safe.
    counts = np.bincount(moves_of(many_games_like(board([(3, 3), (2, 3), (1, 3)]))), minlength=4)
    assert counts[LEFT] == 0
    assert chisquare(counts[[UP, DOWN, RIGHT]]).pvalue > 1e-3


def test_is_uniform_over_the_turns_of_one_game():
    many = board([(3, 3), (2, 3), (1, 3)]).select(np.zeros(DRAWS, np.int64))
    many.arrays.turn[:] = np.arange(DRAWS)
    counts = np.bincount(moves_of(many), minlength=4)
    assert counts[LEFT] == 0
    assert chisquare(counts[[UP, DOWN, RIGHT]]).pvalue > 1e-3


def test_two_slots_of_a_board_draw_independently():
    many = many_games_like(board([(1, 3), (1, 2), (1, 1)], [(5, 3), (5, 2), (5, 1)]))
    pairs = moves_of(many, 0).astype(int) * 4 + moves_of(many, 1)
    counts = np.bincount(pairs, minlength=16).reshape(4, 4)[
        np.ix_([UP, LEFT, RIGHT], [UP, LEFT, RIGHT])
    ]
    assert counts.sum() == DRAWS
    assert chisquare(counts.ravel()).pvalue > 1e-3


def test_takes_the_only_way_out():
    # In the corner with its own body above: right is the only move that is not death.
    corner = board([(0, 0), (0, 1), (0, 2)])
    assert set(moves_of(many_games_like(corner, 100))) == {RIGHT}


def test_same_board_same_answer_and_the_seed_matters():
    many = many_games_like(board([(3, 3), (2, 3), (1, 3)]), 200)
    rows = np.arange(200)
    slots = np.zeros(200, np.int64)
    backwards = RandomLegal(seed=1).act_batch(many, rows[::-1], slots)[::-1]
    assert (moves_of(many) == backwards).all()
    assert (moves_of(many) != RandomLegal(seed=2).act_batch(many, rows, slots)).any()
