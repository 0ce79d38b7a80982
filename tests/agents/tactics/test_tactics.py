"""The tactics suite: is the listed move really the only one, and does the search find it?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agents.search import AlphaBeta
from envs.battlesnake.rules import step_board
from envs.battlesnake.state import MOVE_NAMES
from tests.agents.tactics.brute_force import Snake, Solver, position_of, step
from tests.agents.tactics.drawing import draw, read_puzzles

POSITIONS = Path(__file__).with_name("positions")
PUZZLES = [
    p for path in sorted(POSITIONS.glob("*.txt")) for p in read_puzzles(path.read_text(), path.stem)
]
DRAWING = """\
name: An example
why: to test the reader
task: survive 3
move: up
health: A=90
length: A=4

. . . *
> A .2v
^ .~B <
"""
NAMES = [f"{p.theme}: {p.name}" for p in PUZZLES]


def test_there_are_enough_of_each_kind():
    themes = [p.theme for p in PUZZLES]
    assert len(PUZZLES) >= 120
    assert len(set(NAMES)) == len(NAMES)
    assert min(themes.count(theme) for theme in set(themes)) >= 8
    assert len(set(themes)) == 11


@pytest.mark.parametrize("puzzle", PUZZLES, ids=NAMES)
def test_trying_everything_finds_the_listed_move_and_no_other(puzzle):
    solver = Solver(puzzle.world)
    moves = (solver.surviving_moves if puzzle.task == "survive" else solver.winning_moves)(
        puzzle.position, puzzle.turns
    )
    assert moves == [puzzle.move], puzzle.why


def test_the_search_finds_the_moves():
    """Of all positions at least 95 %, under a budget of nodes that takes well under 50 ms."""
    agent = AlphaBeta(nodes=20_000)
    missed = [name for p, name in zip(PUZZLES, NAMES) if agent.act(p.state(), 0).move != p.move]
    assert len(missed) <= 0.05 * len(PUZZLES), missed


def test_the_search_announces_the_forced_wins():
    agent = AlphaBeta(nodes=20_000)
    for puzzle in (p for p in PUZZLES if p.task == "win"):
        score = agent.act(puzzle.state(), 0).note["score"]
        assert 1_000_000 - puzzle.turns <= score < 1_000_000, puzzle.name


@pytest.mark.parametrize("puzzle", PUZZLES[::4], ids=NAMES[::4])
def test_the_plain_rules_are_the_engines(puzzle):
    """Both sides of the suite's argument play the same game: random lines of play from the
    positions, turn by turn.
    """
    rng = np.random.default_rng(len(puzzle.name))
    for _ in range(5):
        state = puzzle.state()
        position = puzzle.position
        for _ in range(10):
            if state.arrays.num_alive[0] < 2 and not puzzle.world.solo:
                break
            moves = rng.integers(0, 4, (1, state.num_snakes)).astype(np.int8)
            step_board(state.arrays, 0, state.rules, moves)
            position = step(puzzle.world, position, tuple(moves[0].tolist()))
            assert position_of(state) == position


def test_a_drawing_is_read_as_it_is_drawn():
    (puzzle,) = read_puzzles(DRAWING, "example")
    a, b = puzzle.position.snakes
    assert a == Snake(((1, 1), (0, 1), (0, 0), (0, 0)), 90)
    assert b == Snake(((2, 0), (3, 0), (3, 1)), 100)
    assert (puzzle.position.food, puzzle.world.hazards) == ({(3, 2)}, {((1, 0), 1), ((2, 1), 2)})
    assert (puzzle.task, puzzle.turns, MOVE_NAMES[puzzle.move]) == ("survive", 3, "up")


@pytest.mark.parametrize("theme", sorted({p.theme for p in PUZZLES}))
def test_positions_are_drawn_as_they_were_read(theme):
    text = (POSITIONS / f"{theme}.txt").read_text()
    assert all(draw(p.world, p.position) in text for p in PUZZLES if p.theme == theme)
