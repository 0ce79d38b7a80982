"""Finds the best line: the moves that the search expects from a position, with the others' answers
that are worst for the snake.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from agents.measure.analysis.opinions import CERTAIN_DEATH, MoveSearch
from agents.measure.analysis.snake_game import Position
from agents.search.evaluation.evaluate import WIN
from agents.search.make_unmake import drift, search_rules
from agents.search.players import head_distance
from envs.battlesnake.rules import is_over, step_board
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, State

TURNS = 6
_NODES = 3000
_RIVALS = 2


def best_line(position: Position, first: int) -> list[dict[str, int]]:
    """Return the moves of the next `TURNS` turns, the first one given, each turn as {snake's id:
    move}.

    As in the search, the nearest two others know the snake's move before they answer; the rest go
    straight on. Nothing spawns. The line ends early if the game does, or if the snake dies."""
    search = MoveSearch(_NODES)
    ids = position.ids()
    state, me = position.state()
    move = first
    line = list[dict[str, int]]()
    for _ in range(TURNS):
        moves, after = min(
            _answers(state, me, move), key=lambda answer: _worth(answer[1], me, search)
        )
        alive = np.flatnonzero(state.arrays.cause[0] == ALIVE)
        line.append({ids[slot]: int(moves[slot]) for slot in alive})
        state = after
        if state.arrays.cause[0, me] != ALIVE or _is_over(state):
            break
        move = search(state, me).best
    return line


def _answers(state: State, me: int, move: int) -> Iterator[tuple[np.ndarray, State]]:
    """The moves of all snakes, and the position that comes of them, for each way in which the
    rivals can answer.
    """
    s = state.arrays
    rules = search_rules(state.rules)
    others = [int(i) for i in np.flatnonzero(s.cause[0] == ALIVE) if i != me]
    rivals = sorted(others, key=lambda i: head_distance(s, rules, me, i))[:_RIVALS]
    safe = safe_moves(state, np.zeros(len(rivals), np.int64), np.array(rivals))
    for replies in product(*(np.flatnonzero(row) for row in safe)):
        moves = np.zeros(state.num_snakes, np.int8)
        for i in others:
            moves[i] = drift(s, rules, i)
        moves[rivals] = replies
        moves[me] = move
        after = state.select(np.zeros(1, np.int64))
        step_board(after.arrays, 0, rules, moves[None])
        yield moves, after


def _worth(state: State, me: int, search: MoveSearch) -> int:
    if state.arrays.cause[0, me] != ALIVE:
        return CERTAIN_DEATH
    if _is_over(state):
        return WIN
    return search(state, me).best_score


def _is_over(state: State) -> bool:
    return bool(is_over(state.arrays, 0, state.rules))
