"""The search's opinion of every move of a snake: one score per move, all of them searched to the
same depth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from agents.measure.analysis.win_probability import EVALUATION
from agents.search.alphabeta.iterative_deepening import WINDOW
from agents.search.alphabeta.search import begin, prepare, run
from agents.search.alphabeta.stack import (
    MAX_DEPTH,
    QUIET_TURNS,
    AlphaBetaWorkspace,
    new_workspace,
)
from agents.search.evaluation.evaluate import CROWD, SURE, WIN, Weights
from agents.search.evaluation.learned import evaluation_in_words, find_evaluation
from agents.search.make_unmake import search_rules
from agents.search.players import among_the_living
from agents.search.time_management import WorkspacePool
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import State

CERTAIN_DEATH = 1 - WIN
"""The score of a move after which the snake is dead at once."""
T = TypeVar("T")
_MAX_RIVALS = 2
_NEAR = 7
_TABLE_BITS = 18
_NO_LIMIT = 1 << 60
_LOWEST = -3 * WIN
_HIGHEST = 3 * WIN


@dataclass(frozen=True)
class Opinions:
    """The search's opinion of one snake's four moves in one position."""

    scores: tuple[int, int, int, int]
    """The score of each move, up, down, left, right: points of `agents.search.evaluation.evaluate`,
    larger is better for the snake. Beyond `SURE` a win or a loss is proven, within what the search
    assumes.
    """
    safe: tuple[bool, bool, bool, bool]
    """Whether a move isn't certain death. All are False if each of them is."""
    depth: int
    """Turns to which every move was searched, except moves that were proven before."""

    @property
    def best(self) -> int:
        """Return the move with the best score."""
        return int(np.argmax(self.scores))

    @property
    def best_score(self) -> int:
        """Return the score of the best move."""
        return max(self.scores)


def by_move(value: Callable[[int], T]) -> tuple[T, T, T, T]:
    """Return the values of the four moves: up, down, left, right."""
    return value(0), value(1), value(2), value(3)


class MoveSearch:
    """Scores all moves of a snake with `nodes` nodes per position, as alpha-beta does with its
    defaults, but for `crowd_quiet_turns`: it looks as far with many snakes as with two.

    Each move is searched on its own, so that even the worst has a score; alpha-beta by itself only
    proves that it is worse. All share one transposition table and go deeper turn by turn. The
    answer depends on the position and on `nodes` alone."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self._learned = find_evaluation(EVALUATION)
        self._idle: WorkspacePool[AlphaBetaWorkspace] = WorkspacePool(self._new_workspace)

    def _new_workspace(self, state: State) -> AlphaBetaWorkspace:
        learned = self._learned if state.num_snakes == 2 else None
        return new_workspace(state, table_bits=_TABLE_BITS, learned=learned)

    def is_learned(self, state: State) -> bool:
        """Return whether the learned evaluation of duels applies to board 0, so that scores are on
        its scale.
        """
        return self._learned is not None and self._learned.applies_to(state.select_living(0))

    def evaluation_in_words(self, state: State) -> str:
        """Return which evaluation the search uses on board 0, and why."""
        return evaluation_in_words(self._learned, state.select_living(0))

    def __call__(self, state: State, me: int) -> Opinions:
        """Return the opinions on board 0 for the living snake in slot `me`, of a game that isn't
        over.
        """
        here, me = among_the_living(state, 0, me)
        safe = safe_moves(here, np.zeros(1, np.int64), np.array([me]))[0]
        if safe.all() and _all_deadly(here, me):
            safe = np.zeros(4, np.bool_)
        with self._idle.borrow(here) as space:
            space.correction.is_used[0] = self.is_learned(here)
            prepare(
                here.arrays,
                search_rules(here.rules),
                *space[:3],
                me,
                _MAX_RIVALS,
                _NEAR,
                QUIET_TURNS,
            )
            weights = CROWD if here.num_snakes > 2 else Weights()
            scores, depth = _deepen(here, space, weights, np.flatnonzero(safe), self.nodes)
        return Opinions(
            scores=by_move(lambda move: scores.get(move, CERTAIN_DEATH)),
            safe=by_move(lambda move: bool(safe[move])),
            depth=depth,
        )


def _all_deadly(state: State, me: int) -> bool:
    """Whether each move is certain death, where `safe_moves` says that all are safe.

    It says so if none is. Not all can be safe, though, if the snake's neck is in the way.
    """
    head, *rest = state.body(0, me)
    return len(rest) > 1 and rest[0] != head


def _deepen(
    state: State, space: AlphaBetaWorkspace, weights: Weights, moves: np.ndarray, nodes: int
) -> tuple[dict[int, int], int]:
    """Search all moves a turn deeper each time, until the nodes are spent.

    Returns the scores by move, and the depth to which all of them were searched."""
    scores: dict[int, int] = {}
    for depth in range(1, MAX_DEPTH + 1):
        deeper: dict[int, int] = {}
        # The first turn is always searched whole, so that every move has a score.
        until = nodes if depth > 1 else _NO_LIMIT
        for move in map(int, moves):
            if abs(scores.get(move, 0)) > SURE:
                continue
            score = _search(state, space, weights, move, depth, scores.get(move), until)
            if score is None:
                # The depth isn't whole, but what is proven stays proven.
                return scores | _proven(deeper), depth - 1
            deeper[move] = score
        scores |= deeper
        if all(abs(scores[int(move)]) > SURE for move in moves):
            return scores, depth
    return scores, MAX_DEPTH


def _proven(scores: dict[int, int]) -> dict[int, int]:
    return {move: score for move, score in scores.items() if abs(score) > SURE}


def _search(
    state: State,
    space: AlphaBetaWorkspace,
    weights: Weights,
    move: int,
    depth: int,
    last: int | None,
    until: int,
) -> int | None:
    """The score of a move, searched for in a window around its `last` score; None if `until` nodes
    were visited before it was known.
    """
    stack, turns, territory, correction = space
    stack.allowed[:] = False
    stack.allowed[move] = True
    low = _LOWEST
    high = _HIGHEST
    if last is not None:
        low = last - WINDOW
        high = last + WINDOW
    while True:
        begin(stack, depth, low, high)
        if not run(
            state.arrays,
            search_rules(state.rules),
            stack,
            turns,
            territory,
            weights,
            correction,
            until,
        ):
            return None
        best = int(stack.best[0])
        if low < best < high:
            return best
        # The score lies beyond the window: open the side on which it does.
        if best <= low:
            low = _LOWEST
        else:
            high = _HIGHEST
