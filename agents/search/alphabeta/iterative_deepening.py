"""Searches deeper and deeper until the time is up, as chess engines do: the shallow iterations fill
the table, so the deep ones try good moves first, and there is a move at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agents.search.alphabeta.search import begin, run
from agents.search.alphabeta.stack import (
    FINISHED,
    HIGH,
    ITERATION,
    LOW,
    MOVE,
    NODES,
    SCORE,
    VALUE,
    AlphaBetaWorkspace,
    Stack,
)
from agents.search.alphabeta.transposition_table import NO_MOVE
from agents.search.evaluation.correction import Correction
from agents.search.evaluation.evaluate import SURE, WIN, Weights
from agents.search.evaluation.territory import Territory
from agents.search.make_unmake import Turns, drift, search_rules
from agents.search.time_management import SearchLimits
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, State

WINDOW = 150
"""How far from the last score the next iteration looks for the score, up and down."""
INFINITE = 3 * WIN
"""A score that is larger than any."""
NEVER = -INFINITE
"""The score of a move that isn't considered; all others are larger."""


@kernel
def begin_deepening(s: Boards, r: Rules, x: Stack, me: int, first_depth: int) -> None:
    """Begin the first iteration, `first_depth` turns deep, with moves that `x.allowed` permits.

    Without any iteration the move would be straight on, or another that is allowed."""
    move = drift(s, r, me)
    if not x.allowed[move]:
        move = x.allowed.argmax()
    x.reg[MOVE] = move
    x.reg[SCORE] = 0
    x.reg[FINISHED] = 0
    _begin_iteration(x, first_depth, -INFINITE, INFINITE)


@kernel
def deepen(
    s: Boards,
    r: Rules,
    x: Stack,
    u: Turns,
    f: Territory,
    w: Weights,
    c: Correction,
    max_depth: int,
    until: int,
) -> bool:
    """Search one turn deeper again and again. Return True if more depth can't change the move, or
    isn't wanted, and False once `until` nodes were visited in all.

    After False, another call continues. `x.reg` has the `MOVE`, and the `SCORE` and the depth of
    the last iteration that was `FINISHED`."""
    while x.reg[ITERATION] <= max_depth:
        # Step 1. Search in a narrow window around the last score, which cuts more.
        if not run(s, r, x, u, f, w, c, until):
            _note_move(x, x.best[0])
            return False
        # Not the best of the root: a game that is over has a score, but no move.
        best = x.reg[VALUE]
        _note_move(x, best)
        # Step 2. If the score lies outside of the window, open that side, and search again.
        depth = x.reg[ITERATION]
        if best <= x.reg[LOW]:
            _begin_iteration(x, depth, -INFINITE, x.reg[HIGH])
            continue
        if best >= x.reg[HIGH]:
            _begin_iteration(x, depth, x.reg[LOW], INFINITE)
            continue
        x.reg[SCORE] = best
        x.reg[FINISHED] = depth
        # Step 3. Stop early, if more depth can't change the move.
        is_forced = x.num_choices[0] == 1 and depth >= 2
        if abs(best) > SURE or is_forced:
            break
        _begin_iteration(x, depth + 1, best - WINDOW, best + WINDOW)
    return True


@kernel
def _begin_iteration(x: Stack, depth: int, low: int, high: int) -> None:
    x.reg[ITERATION] = depth
    x.reg[LOW] = low
    x.reg[HIGH] = high
    begin(x, depth, low, high)


@kernel
def _note_move(x: Stack, best: int) -> None:
    """Take over the root's move. A better one counts at once, even if the iteration isn't
    finished.
    """
    move = x.best_move[0]
    if move != NO_MOVE and best > x.reg[LOW] and x.allowed[move]:
        x.reg[MOVE] = move


class Outcome(NamedTuple):
    """The result of a search."""

    move: int
    """The best move that is known, be it of an iteration that wasn't finished."""
    score: int
    """The score of the last iteration that was finished."""
    depth: int
    """The depth of that iteration, in turns."""


@dataclass
class IterativeDeepening:
    """One thread's search of board 0 of `state` for snake `me`, which `search.prepare` has begun in
    `space`.
    """

    state: State
    me: int
    space: AlphaBetaWorkspace
    limits: SearchLimits
    weights: Weights
    max_depth: int
    first_depth: int
    """The depth of the first iteration. Threads that search together begin at different depths."""
    allowed: np.ndarray
    """bool (4,): the moves that may be played."""

    def __post_init__(self) -> None:
        self.rules = search_rules(self.state.rules)
        self.space.stack.allowed[:] = self.allowed

    def run(self) -> Outcome:
        """Search until the limits are spent, a win or loss is proven, or `max_depth` is reached."""
        x, u, f, c = self.space
        s = self.state.arrays
        begin_deepening(s, self.rules, x, self.me, self.first_depth)
        until = self.limits.pause(0)
        # It always makes a start, so that a first call compiles all.
        while not deepen(s, self.rules, x, u, f, self.weights, c, self.max_depth, until):
            nodes = int(x.reg[NODES])
            if self.limits.is_spent(nodes):
                break
            until = self.limits.pause(nodes)
        return Outcome(int(x.reg[MOVE]), int(x.reg[SCORE]), int(x.reg[FINISHED]))

    def score_moves(self, moves: np.ndarray) -> np.ndarray:
        """Return the scores of these moves, int64 (4,), at the last depth completed for all of
        them; `NEVER` for other moves.
        """
        x = self.space.stack
        scores = np.full(4, NEVER)
        scores[moves] = 0
        for depth in range(self.first_depth, self.max_depth + 1):
            deeper_scores = scores.copy()
            for move in moves:
                x.allowed[:] = False
                x.allowed[move] = True
                if not self._iterate(depth, -INFINITE, INFINITE):
                    return scores
                deeper_scores[move] = x.reg[VALUE]
            scores = deeper_scores
            are_sure = (np.abs(scores[moves]) > SURE).all()
            if are_sure or (len(moves) == 1 and depth >= 2):
                break
        return scores

    def _iterate(self, depth: int, low: int, high: int) -> bool:
        """Run one iteration in the window `low` to `high`, and return False if the limits were
        spent first.

        It always makes a start, so that a first call compiles all."""
        x, u, f, c = self.space
        s = self.state.arrays
        begin(x, depth, low, high)
        while not run(s, self.rules, x, u, f, self.weights, c, self.limits.pause(x.reg[NODES])):
            if self.limits.is_spent(x.reg[NODES]):
                return False
        return True


def run_together(searches: Sequence[IterativeDeepening]) -> list[Outcome]:
    """Run each search on its own thread, and return each one's result when the first finishes."""
    first, *others = searches
    if not others:
        return [first.run()]
    with ThreadPoolExecutor(len(others)) as pool:
        pending = [pool.submit(search.run) for search in others]
        try:
            outcome = first.run()
        finally:
            for search in others:
                search.limits.end()
        return [outcome, *(other.result() for other in pending)]


class Stops(SearchLimits):
    """Limits that pause a search after each of several ascending numbers of nodes, and end it after
    the last one.

    `look` is called at each pause."""

    def __init__(self, nodes: Sequence[int], look: Callable[[], None]) -> None:
        super().__init__(nodes[-1], None)
        self._stops_ahead = list(nodes)
        self._look = look

    def pause(self, nodes: int) -> int:
        return self._stops_ahead[0]

    def is_spent(self, nodes: int) -> bool:
        while self._stops_ahead and nodes >= self._stops_ahead[0]:
            del self._stops_ahead[0]
            self._look()
        return not self._stops_ahead
