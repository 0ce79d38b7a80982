from __future__ import annotations

import numpy as np
import pytest

from agents.heuristics import GreedyFood
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import DOWN, LEFT, MOVE_STEPS, RIGHT, UP
from tests.agents.boards import board, played_boards

HEADING_RIGHT = [(3, 3), (2, 3), (1, 3)]


def move_on(state):
    return GreedyFood().act(state, 0).move


@pytest.mark.parametrize(
    ("food", "expected"),
    [((3, 6), UP), ((3, 0), DOWN), ((6, 3), RIGHT), ((4, 6), UP), ((5, 2), DOWN)],
    ids=["above", "below", "ahead", "tie goes up before right", "tie goes down before right"],
)
def test_goes_towards_the_food(food, expected):
    assert move_on(board(HEADING_RIGHT, food=[food])) == expected


def test_of_two_foods_the_nearer_counts():
    assert move_on(board(HEADING_RIGHT, food=[(3, 0), (3, 5)])) == UP


def test_goes_round_its_own_neck():
    assert move_on(board(HEADING_RIGHT, food=[(0, 3)])) == UP


def test_a_wrapped_board_is_shorter_across_the_edge():
    body = [(3, 5), (3, 4), (3, 3)]
    assert move_on(board(body, food=[(6, 5)])) == RIGHT
    assert move_on(board([(1, 5), (1, 4), (1, 3)], food=[(6, 5)], ruleset="wrapped")) == LEFT
    assert move_on(board([(3, 6), (3, 5), (3, 4)], food=[(3, 0)], ruleset="wrapped")) == UP


def test_avoids_certain_death_but_not_a_dead_end():
    walled = [(3, 3), (3, 2), (3, 1)]
    other = [(6, 5), (5, 5), (4, 5), (3, 5), (2, 5), (2, 4), (2, 3), (2, 2), (2, 1)]
    # Up is a pocket with food beyond its wall: one step in is not death yet.
    assert move_on(board(walled, other, food=[(3, 6)])) == UP
    # Left is the other's body, which stays.
    assert move_on(board(walled, other, food=[(0, 3)])) != LEFT


def test_walks_through_a_hazard_that_does_not_kill_and_round_one_that_does():
    assert move_on(board(HEADING_RIGHT, food=[(6, 3)], hazards=[(4, 3)], health=16)) == RIGHT
    assert move_on(board(HEADING_RIGHT, food=[(6, 3)], hazards=[(4, 3)], health=15)) != RIGHT


@pytest.mark.parametrize("ruleset", ["standard", "wrapped"])
def test_agrees_with_a_plain_reading_of_its_rule(ruleset):
    compared = 0
    for state, boards, slots in played_boards(6, width=9, height=7, ruleset=ruleset):
        moves = GreedyFood().act_batch(state, boards, slots)
        safe = safe_moves(state, boards, slots)
        for row, (b, i) in enumerate(zip(boards, slots)):
            x, y = state.body(b, i)[0]
            food = state.points(state.arrays.food[b])
            distance = [
                _nearest(x + dx, y + dy, food, state, ruleset == "wrapped") for dx, dy in MOVE_STEPS
            ]
            candidates = [m for m in range(4) if safe[row, m]]
            assert moves[row] == min(candidates, key=lambda m: (distance[m], m))
            compared += 1
    assert compared >= 100


def _nearest(x, y, food, state, wrapped):
    def one(dx, side):
        dx = abs(dx) % side if wrapped else abs(dx)
        return min(dx, side - dx) if wrapped else dx

    return min(
        (one(x - fx, state.width) + one(y - fy, state.height) for fx, fy in food), default=np.inf
    )
