"""The certain-death mask on boards drawn by hand, and its promise in play."""

from __future__ import annotations

import numpy as np

from envs.battlesnake.games import play_turn
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, MOVE_NAMES
from tests.envs.battlesnake.positions import board, living, random_games


def safe(state, slot=0):
    mask = safe_moves(state, np.array([0]), np.array([slot]))[0]
    return {name for name, ok in zip(MOVE_NAMES, mask, strict=True) if ok}


def test_walls_and_neck():
    assert safe(board(5, 5, [(0, 0), (1, 0), (2, 0)])) == {"up"}
    assert safe(board(5, 5, [(0, 0), (1, 0), (2, 0)], ruleset="wrapped")) == {"up", "down", "left"}


def test_a_tail_that_leaves_is_free_and_one_that_stays_is_not():
    circle = [(1, 1), (1, 2), (2, 2), (2, 1)]
    assert "right" in safe(board(5, 5, circle))
    assert "right" not in safe(board(5, 5, [*circle, (2, 1)]))


def test_other_bodies_block_and_heads_that_may_meet_do_not():
    other = [(3, 3), (3, 2), (3, 1)]
    assert safe(board(7, 7, [(2, 2), (1, 2), (0, 2)], other)) == {"up", "down"}
    assert "up" in safe(board(7, 7, [(2, 2), (1, 2), (0, 2)], other))  # (2, 3) may be contested


def test_hunger_leaves_only_food():
    assert safe(board(7, 7, [(3, 3), (3, 2), (3, 1)], food=[(4, 3)], health=1)) == {"right"}
    assert len(safe(board(7, 7, [(3, 3), (3, 2), (3, 1)], food=[(4, 3)], health=2))) == 3


def test_hazards_kill_by_the_layer_unless_there_is_food():
    drawn = {"hazards": [(4, 3), (4, 3), (2, 3)], "hazard_damage": 14, "health": 20}
    assert safe(board(7, 7, [(3, 3), (3, 2), (3, 1)], **drawn)) == {"up", "left"}
    assert safe(board(7, 7, [(3, 3), (3, 2), (3, 1)], food=[(4, 3)], **drawn)) == {
        "up",
        "left",
        "right",
    }


def test_no_safe_move_means_no_mask():
    assert len(safe(board(3, 3, [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0)]))) == 4


def test_a_masked_move_kills_whatever_the_others_do():
    """Played against all replies drawn at random; only a body that vanishes in the same turn may
    save.
    """
    tried = 0
    for state in random_games(
        num_boards=8, turns=40, seed=3, width=7, height=7, ruleset="royale", shrink_every_n_turns=9
    ):
        boards, slots = living(state)
        mask = safe_moves(state, boards, slots)
        rng = np.random.default_rng(tried)
        for b, slot, row in zip(boards, slots, mask, strict=True):
            for move in np.flatnonzero(~row):
                trial = state.select(np.array([b]))
                before = trial.arrays.cause.copy()
                moves = rng.integers(0, 4, trial.arrays.cause.shape).astype(np.int8)
                moves[0, slot] = move
                play_turn(trial, moves, np.ones(1, bool))
                vanished = ((before == ALIVE) & np.isin(trial.arrays.cause, [4, 5, 6])).sum() > 0
                assert trial.arrays.cause[0, slot] != ALIVE or vanished
                tried += 1
    assert tried > 500
