"""The arrays of an alpha-beta search: its own stack instead of recursion, so that it can stop at
any node and go on from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agents.search.alphabeta.transposition_table import new_table
from agents.search.evaluation.correction import Correction, new_correction
from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.evaluation.territory import Territory, new_territory
from agents.search.make_unmake import Turns, new_turns
from envs.battlesnake.state import State

MAX_DEPTH = 56
"""The most turns that a search looks ahead, quiet turns aside."""
MAX_RIVALS = 3
"""The most snakes whose moves are searched besides mine."""
QUIET_TURNS = 4
"""The most turns beyond the depth for which a search goes on where two heads could meet."""
MAX_TURNS = MAX_DEPTH + QUIET_TURNS + 1

# These constants are compiled into every kernel. (The word keeps this file in the cache's hash.)
# The entries of `Stack.reg`: where an interrupted search stands, and what it has counted and found.
PLY = 0
TURN = 1
NODES = 2
TURNS_PLAYED = 3
VALUE = 4
RETURNING = 5
PLAYERS = 6
QUIET = 7
ITERATION = 8
LOW = 9
HIGH = 10
MOVE = 11
SCORE = 12
FINISHED = 13
_NUM_REGISTERS = 14


class Stack(NamedTuple):
    """The search's own stack, and what it learns on the way.

    A ply is one snake's choice, so a turn of three searched snakes takes three plies. Arrays of P
    entries have one per ply. S is the number of slots, C the number of padded cells, and M the
    number of positions in the table.
    """

    reg: np.ndarray
    """int64 (14,): the registers, from `PLY` to `FINISHED`."""
    players: np.ndarray
    """int64 (S,): the slots of the snakes that are searched, mine first."""
    moves: np.ndarray
    """int8 (1, S): the moves of the turn that is about to be played."""
    player: np.ndarray
    """int64 (P,): who chooses, as a place in `players`."""
    depth: np.ndarray
    """int64 (P,): the turns that are still to be searched."""
    key: np.ndarray
    """uint64 (P,): the position's key in the table; written where I choose."""
    alpha: np.ndarray
    """int64 (P,): the score of which I am sure already."""
    beta: np.ndarray
    """int64 (P,): the score above which the others won't let it come."""
    floor: np.ndarray
    """int64 (P,): alpha as it was on entry."""
    best: np.ndarray
    """int64 (P,): the best score so far, for the one who chooses."""
    best_move: np.ndarray
    """int64 (P,): the move with that score, or `NO_MOVE`."""
    choices: np.ndarray
    """int64 (P, 4): the moves to try, the most promising first."""
    merit: np.ndarray
    """int64 (4,): scratch by which the choices of one ply are sorted."""
    num_choices: np.ndarray
    """int64 (P,): how many of `choices` there are."""
    tried: np.ndarray
    """int64 (P,): how many of them have been tried."""
    killer: np.ndarray
    """int64 (P,): the move that last caused a cut here."""
    history: np.ndarray
    """int64 (S, C): how often a snake's move to a cell caused a cut, weighted by depth."""
    table: np.ndarray
    """uint64 (M, 2): the transposition table."""
    allowed: np.ndarray
    """bool (4,): the moves that I may choose at the root."""


class AlphaBetaWorkspace(NamedTuple):
    """All arrays that one search writes to."""

    stack: Stack
    turns: Turns
    territory: Territory
    correction: Correction


def new_workspace(
    state: State, *, table_bits: int, learned: LearnedEvaluation | None = None
) -> AlphaBetaWorkspace:
    """Allocate the arrays for a search on boards of this state's shape, with a table of
    2**`table_bits` positions.
    """
    snakes = state.num_snakes
    cells = state.arrays.occupied.shape[1]
    plies = MAX_TURNS * (MAX_RIVALS + 1) + 1

    def per_ply() -> np.ndarray:
        return np.zeros(plies, np.int64)

    stack = Stack(
        reg=np.zeros(_NUM_REGISTERS, np.int64),
        players=np.zeros(max(snakes, MAX_RIVALS + 1), np.int64),
        moves=np.zeros((1, snakes), np.int8),
        player=per_ply(),
        depth=per_ply(),
        key=np.zeros(plies, np.uint64),
        alpha=per_ply(),
        beta=per_ply(),
        floor=per_ply(),
        best=per_ply(),
        best_move=per_ply(),
        choices=np.zeros((plies, 4), np.int64),
        merit=np.zeros(4, np.int64),
        num_choices=per_ply(),
        tried=per_ply(),
        killer=per_ply(),
        history=np.zeros((snakes, cells), np.int64),
        table=new_table(table_bits),
        allowed=np.ones(4, np.bool_),
    )
    territory = new_territory(state, with_stages=learned is not None)
    correction = new_correction(state, territory, learned)
    return AlphaBetaWorkspace(stack, new_turns(state, MAX_TURNS), territory, correction)


def share_table(space: AlphaBetaWorkspace, owner: AlphaBetaWorkspace) -> AlphaBetaWorkspace:
    """Return a workspace with the arrays of `space` and the transposition table of `owner`."""
    return space._replace(stack=space.stack._replace(table=owner.stack.table))
