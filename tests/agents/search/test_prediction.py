"""A rival goes where food is near and nobody stronger can meet it."""

from __future__ import annotations

import numpy as np
import pytest

import agents
from agents.search.make_unmake import begin_turns, drift, new_turns, search_rules
from agents.search.prediction import likely_move
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, State
from tests.agents.boards import board

UP, DOWN, LEFT, RIGHT = range(4)
# Its head in the middle of 7×7, on its way to the right.
MINE = [(3, 3), (2, 3), (1, 3)]


def predicted(state, slot=0):
    r = search_rules(state.rules)
    turns = new_turns(state, 1)
    begin_turns(state.arrays, r, turns)
    return likely_move(state.arrays, r, turns, slot)


def test_goes_straight_on_where_nothing_matters():
    assert predicted(board(MINE)) == RIGHT


@pytest.mark.parametrize(("food", "move"), [((3, 4), UP), ((3, 2), DOWN), ((3, 6), UP)])
def test_goes_to_food_the_sooner_the_nearer(food, move):
    assert predicted(board(MINE, food=[food])) == move


def test_leaves_an_edge_and_goes_towards_the_centre():
    assert predicted(board([(5, 3), (4, 3), (3, 3)])) == UP
    assert predicted(board([(5, 4), (4, 4), (3, 4)])) == DOWN


def test_eats_at_an_edge():
    assert predicted(board([(3, 1), (2, 1), (1, 1)], food=[(3, 0)])) == DOWN


def test_leaves_food_to_a_head_that_is_no_shorter():
    shorter = [(3, 5), (2, 5)]
    longer = [(3, 5), (2, 5), (1, 5)]
    assert predicted(board(MINE, shorter, food=[(3, 4)])) == UP
    assert predicted(board(MINE, longer, food=[(3, 4)])) != UP


def test_goes_across_an_edge_to_food_where_the_board_wraps():
    snake = [(3, 5), (2, 5), (1, 5)]
    assert predicted(board(snake, food=[(3, 0)], ruleset="wrapped")) == UP
    assert predicted(board(snake, food=[(3, 0)])) == DOWN


def test_meets_a_stronger_head_rather_than_a_wall():
    """Only one move isn't certain death, though a longer snake can go there, too."""
    corner = [(0, 0), (0, 1), (0, 2)]
    assert predicted(board(corner, [(1, 1), (2, 1), (3, 1), (4, 1)])) == RIGHT


def test_without_any_move_it_goes_straight_on():
    trapped = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2)]
    assert predicted(board(trapped)) == LEFT


def test_names_more_moves_of_flood_than_straight_on_does():
    state = State(20, width=11, height=11, num_snakes=4)
    state.seed(1)
    running = start_games(state)
    player = agents.make("flood")
    hits = np.zeros(2)
    total = 0
    for turn in range(30):
        boards, slots = np.nonzero((state.arrays.cause == ALIVE) & running[:, None])
        moves = player.act_batch(state, boards, slots)
        free = safe_moves(state, boards, slots).sum(axis=1) > 1
        if turn > 5:
            for b, slot, move in zip(boards[free], slots[free], moves[free], strict=True):
                one = state.select(np.array([b]))
                r = search_rules(one.rules)
                hits += [predicted(one, slot) == move, drift(one.arrays, r, slot) == move]
                total += 1
        joint = np.zeros((20, 4), np.int8)
        joint[boards, slots] = moves
        play_turn(state, joint, running)
    likely, straight = hits / total
    assert likely > 0.75 > 0.7 > straight
