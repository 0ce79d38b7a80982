"""The opinions on moves, against what trying everything proves and against the plain search."""

from __future__ import annotations

import numpy as np
import pytest

from agents.measure.analysis.opinions import CERTAIN_DEATH, MoveSearch
from agents.search.evaluation.evaluate import SURE, Weights
from envs.battlesnake.state import ALIVE
from tests.agents.boards import board, played_boards
from tests.agents.tactics.test_tactics import PUZZLES


@pytest.fixture(scope="module")
def search():
    return MoveSearch(20_000)


def test_the_only_right_moves_have_the_best_scores(search):
    """Trying everything proves each of them (tests/agents/tactics). The lost duels need the longer
    look that the analysis takes around a loss.
    """
    puzzles = [puzzle for puzzle in PUZZLES if puzzle.theme != "lost_duels"]
    wrong = [puzzle.name for puzzle in puzzles if search(puzzle.state(), 0).best != puzzle.move]
    assert len(wrong) <= 0.05 * len(puzzles), wrong


def test_every_losing_move_of_a_short_duel_is_proven_to_lose_or_to_draw(search):
    short = [
        one
        for one in PUZZLES
        if one.task == "survive" and one.turns <= 4 and len(one.position.snakes) == 2
    ]
    assert len(short) > 15
    for puzzle in short:
        scores = search(puzzle.state(), 0).scores
        assert max(scores[move] for move in range(4) if move != puzzle.move) <= Weights().draw, (
            puzzle.name
        )


def test_a_shut_in_snake_has_no_safe_move(search):
    state = board([(0, 0), (0, 1), (1, 1), (1, 0), (2, 0)], [(5, 5), (5, 6), (4, 6)])
    opinions = search(state, 0)
    assert opinions.safe == (False, False, False, False)
    assert opinions.scores == (CERTAIN_DEATH,) * 4


def test_necks_and_walls_are_certain_death_and_the_rest_is_scored(search):
    state = board([(0, 3), (0, 2), (0, 1)], [(5, 5), (5, 6), (4, 6)])
    opinions = search(state, 0)
    assert opinions.safe == (True, False, False, True)
    assert [score == CERTAIN_DEATH for score in opinions.scores] == [False, True, True, False]
    assert all(abs(opinions.scores[move]) < SURE for move in (0, 3))
    assert opinions.depth > 3


def test_the_last_two_of_a_larger_game_are_judged_as_a_duel(search):
    compared = 0
    for state, boards, slots in played_boards(40):
        for here, slot in zip(boards, slots, strict=True):
            if state.arrays.num_alive[here] == 2 and compared < 6:
                larger = state.select(np.array([here]))
                is_second = (larger.arrays.cause[0, :slot] == ALIVE).any()
                assert search.is_learned(larger)
                assert search(larger, slot) == search(larger.select_living(0), int(is_second))
                compared += 1
    assert compared == 6


def test_the_answer_depends_on_position_and_nodes_alone(search):
    state = board([(3, 3), (3, 2), (3, 1)], [(5, 5), (5, 6), (4, 6)], food=[(1, 1)])
    first = search(state, 0)
    search(PUZZLES[0].state(), 0)
    assert search(state, 0) == first == MoveSearch(20_000)(state, 0)
    assert MoveSearch(200)(state, 0).depth < first.depth
