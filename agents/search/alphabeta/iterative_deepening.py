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
from agents.search.alphabeta.stack import NODES, VALUE, AlphaBetaWorkspace
from agents.search.alphabeta.transposition_table import NO_MOVE
from agents.search.evaluation.evaluate import SURE, WIN, Weights
from agents.search.make_unmake import drift, search_rules
from agents.search.time_management import SearchLimits
from envs.battlesnake.state import State

WINDOW = 150
"""How far from the last score the next iteration looks for the score, up and down."""
INFINITE = 3 * WIN
"""A score that is larger than any."""
NEVER = -INFINITE
"""The score of a move that isn't considered; all others are larger."""


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
        x = self.space.stack
        # Step 1. Without any iteration the move would be straight on, or another that is allowed.
        move = drift(self.state.arrays, self.rules, self.me)
        if not self.allowed[move]:
            move = int(self.allowed.argmax())
        score = 0
        finished_depth = 0
        window = INFINITE
        for depth in range(self.first_depth, self.max_depth + 1):
            # Step 2. Search one turn deeper, in a narrow window around the last score, which cuts
            # more.
            low = score - window
            high = score + window
            while True:
                is_finished = self._iterate(depth, low, high)
                if is_finished:
                    # Not the best of the root: a game that is over has a score, but no move.
                    best = int(x.reg[VALUE])
                else:
                    best = int(x.best[0])
                # Step 3. A better move counts at once, even if the iteration can't be finished.
                best_move = int(x.best_move[0])
                if best_move != NO_MOVE and best > low and self.allowed[best_move]:
                    move = best_move
                if not is_finished or low < best < high:
                    break
                # Step 4. The score lies outside of the window: open that side, and search again.
                if best <= low:
                    low = -INFINITE
                else:
                    high = INFINITE
            if not is_finished:
                break
            score = best
            finished_depth = depth
            window = WINDOW
            # Step 5. Stop early, if more depth can't change the move.
            is_forced = x.num_choices[0] == 1 and depth >= 2
            if abs(score) > SURE or is_forced:
                break
        return Outcome(move, score, finished_depth)

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
