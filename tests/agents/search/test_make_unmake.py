"""Taking back gives back the board; the hash of a line of play is the hash of its last board."""

from __future__ import annotations

import numpy as np
import pytest

from agents.search.make_unmake import (
    begin_turns,
    new_turns,
    play,
    position_hash,
    search_rules,
    take_back,
)
from envs.battlesnake.rules import is_over
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE
from tests.agents.boards import board, played_boards

RULESETS = ("standard", "solo", "royale", "wrapped", "constrictor", "wrapped_constrictor")
WHOLE = ("cause", "occupied", "food", "hazards", "num_food", "num_hazards", "num_alive")


def snapshot(state):
    """What the rules read: everything of living snakes, in canonical form, and the cells."""
    a = state.arrays
    bodies = [
        (i, tuple(state.body(0, i)), int(a.health[0, i]))
        for i in range(state.num_snakes)
        if a.cause[0, i] == ALIVE
    ]
    return bodies, {name: getattr(a, name).tolist() for name in WHOLE}


def fresh_hash(state):
    turns = new_turns(state, 1)
    begin_turns(state.arrays, state.rules, turns)
    return int(position_hash(state.arrays, turns, 0))


@pytest.mark.parametrize("ruleset", RULESETS)
def test_taking_back_restores_the_board_and_the_hash_follows_it(ruleset):
    rng = np.random.default_rng(3)
    boards = [
        state.select(rows[[k]])
        for state, rows, _ in played_boards(
            60, num_snakes=3, width=7, height=7, ruleset=ruleset, food_spawn_chance=60
        )
        for k in range(0, len(rows), 9)
    ]
    assert len(boards) > 20
    for state in boards[:60]:
        a = state.arrays
        r = search_rules(state.rules)
        turns = new_turns(state, 12)
        begin_turns(a, state.rules, turns)
        line = [(snapshot(state), int(position_hash(a, turns, 0)))]
        played = 0
        while played < 12 and not is_over(a, 0, r):
            moves = rng.integers(0, 4, (1, state.num_snakes)).astype(np.int8)
            if rng.random() < 0.8:
                safe = safe_moves(state, np.zeros(3, int), np.arange(3))
                moves[0] = (rng.random((3, 4)) * safe).argmax(axis=1)
            play(a, r, moves, turns, played)
            played += 1
            line.append((snapshot(state), int(position_hash(a, turns, played))))
            assert line[-1][1] == fresh_hash(state)
        for t in reversed(range(played)):
            take_back(a, r, turns, t)
            assert (snapshot(state), int(position_hash(a, turns, t))) == line[t]


def test_two_bodies_over_the_same_cells_differ_by_their_order():
    rows = [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0), (2, 0), (2, 1), (2, 2)]
    columns = [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (0, 2), (1, 2), (2, 2)]
    assert sorted(rows) == sorted(columns)
    assert fresh_hash(board(rows, size=(3, 3))) != fresh_hash(board(columns, size=(3, 3)))
