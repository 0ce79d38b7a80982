"""The fills of `cell_by_cell` as bitboards, for boards of up to 128 cells.

They come to the same numbers in a fraction of the time. They know neither edges that are crossed
nor hazards nor hunger: `fits` tells whether a board can be filled so, and `spread` how many moves
the snake has to live through.

`envs.battlesnake.state` explains the kernels' one-letter arguments. Here `p` is the place: the
scratch memory of one thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.reach.bitboards import MAX_CELLS, beside, bits_in, make_bitboards
from envs.battlesnake.reach.cell_by_cell import FAR
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, State, body_cell, head_cell, is_alive

_0 = np.uint64(0)
_MOVES = MAX_CELLS + 2
"""More moves than a fill can take."""


class ReachBitboards(NamedTuple):
    """The tables of bitboards, and scratch arrays with P places, M moves, S slots and C padded
    cells. Sets of moves beyond the last one that is noted are like the last one.
    """

    of_cell: np.ndarray
    """uint64 (C, 2): `Bitboards.of_cell`."""
    columns: np.ndarray
    """uint64 (2, 2): `Bitboards.columns`."""
    open: np.ndarray
    """uint64 (P, M, 2): the cells that a head may enter with each move."""
    last_open: np.ndarray
    """int64 (P,): the last move that is noted there."""
    regions: np.ndarray
    """uint64 (P, S, M, 2): the cells where each snake could be by each move."""
    last_region: np.ndarray
    """int64 (P, S): the last move that is noted there."""
    rivals: np.ndarray
    """uint64 (P, M, 2): the cells that another snake has before the snake in question, if that one
    comes with this move.
    """
    last_rivals: np.ndarray
    """int64 (P,): the last move that is noted there."""
    food: np.ndarray
    """uint64 (P, 2): the cells with food."""


def new_reach_bitboards(state: State, places: int) -> ReachBitboards:
    """Allocate the arrays for boards of this state's shape."""
    bitboards = make_bitboards(state.width, state.height)
    snakes = state.num_snakes
    moves = _MOVES if bitboards.columns.any() else 1
    return ReachBitboards(
        of_cell=bitboards.of_cell,
        columns=bitboards.columns,
        open=np.zeros((places, moves, 2), np.uint64),
        last_open=np.zeros(places, np.int64),
        regions=np.zeros((places, snakes, moves, 2), np.uint64),
        last_region=np.zeros((places, snakes), np.int64),
        rivals=np.zeros((places, moves, 2), np.uint64),
        last_rivals=np.zeros(places, np.int64),
        food=np.zeros((places, 2), np.uint64),
    )


@kernel
def fits(s: Boards, b: int, r: Rules, x: ReachBitboards) -> bool:
    """Return whether the fills of board b are those of `cell_by_cell`, hunger aside."""
    has_no_harm = s.num_hazards[b] == 0 or r.hazard_damage == 0
    return x.columns[0, 0] != 0 and not r.wrapped and has_no_harm


@kernel
def note_open(
    s: Boards, b: int, r: Rules, grown: int, free_at: np.ndarray, x: ReachBitboards, p: int
) -> None:
    """Write `open` and `food`, and empty `rivals`. `note_bodies` must have written `free_at` for a
    snake that eats `grown` food.
    """
    last = 0
    if not r.constrictor:
        for j in range(s.cause.shape[1]):
            if is_alive(s, b, j):
                last = max(last, min(np.int64(s.length[b, j]) + grown, _MOVES - 1))
    for move in range(last + 1):
        x.open[p, move, 0] = _0
        x.open[p, move, 1] = _0
    taken0 = _0
    taken1 = _0
    for j in range(s.cause.shape[1]):
        if is_alive(s, b, j):
            for entry in range(s.length[b, j]):
                cell = body_cell(s, b, j, entry)
                taken0 |= x.of_cell[cell, 0]
                taken1 |= x.of_cell[cell, 1]
                move = np.int64(free_at[cell])
                if move <= last:
                    x.open[p, move, 0] |= x.of_cell[cell, 0]
                    x.open[p, move, 1] |= x.of_cell[cell, 1]
    open0 = (x.columns[0, 0] | x.columns[1, 0]) & ~taken0
    open1 = (x.columns[0, 1] | x.columns[1, 1]) & ~taken1
    for move in range(last + 1):
        open0 |= x.open[p, move, 0]
        open1 |= x.open[p, move, 1]
        x.open[p, move, 0] = open0
        x.open[p, move, 1] = open1
    x.last_open[p] = last
    food0 = _0
    food1 = _0
    if s.num_food[b]:
        for cell in range(s.food.shape[1]):
            if s.food[b, cell]:
                food0 |= x.of_cell[cell, 0]
                food1 |= x.of_cell[cell, 1]
    x.food[p, 0] = food0
    x.food[p, 1] = food1
    x.last_rivals[p] = 0
    x.rivals[p, 0, 0] = _0
    x.rivals[p, 0, 1] = _0


@kernel
def note_region(s: Boards, b: int, j: int, r: Rules, x: ReachBitboards, p: int) -> None:
    """Write `regions` of snake j: what `note_arrivals` finds."""
    head = head_cell(s, b, j)
    new0 = x.of_cell[head, 0]
    new1 = x.of_cell[head, 1]
    all0 = new0
    all1 = new1
    last_open = x.last_open[p]
    move = 0
    while True:
        x.regions[p, j, move, 0] = all0
        x.regions[p, j, move, 1] = all1
        if not new0 | new1:
            break
        move += 1
        row = min(move, last_open)
        new0, new1 = beside(r, x.columns, new0, new1)
        new0 &= x.open[p, row, 0] & ~all0
        new1 &= x.open[p, row, 1] & ~all1
        all0 |= new0
        all1 |= new1
    x.last_region[p, j] = move


@kernel
def note_rivals(s: Boards, b: int, i: int, x: ReachBitboards, p: int) -> None:
    """Write `rivals` for snake i, from all snakes' `regions`. Of two that come at once, the longer
    one is first.
    """
    last = 0
    for j in range(s.cause.shape[1]):
        if j != i and is_alive(s, b, j):
            last = max(last, x.last_region[p, j] + 1)
    for move in range(last + 1):
        x.rivals[p, move, 0] = _0
        x.rivals[p, move, 1] = _0
    for j in range(s.cause.shape[1]):
        if j != i and is_alive(s, b, j):
            before = int(s.length[b, j] < s.length[b, i])
            last_region = x.last_region[p, j]
            for move in range(before, last + 1):
                row = min(move - before, last_region)
                x.rivals[p, move, 0] |= x.regions[p, j, row, 0]
                x.rivals[p, move, 1] |= x.regions[p, j, row, 1]
    x.last_rivals[p] = last


@kernel
def spread(r: Rules, start: int, x: ReachBitboards, p: int) -> tuple[int, int, int, int]:
    """Fill from `start`, entered on move 1. Returns `area`, `first` and `first_food` of a `Reach`,
    and the move with which the last cells are entered.

    The snake must live as long; otherwise `fill` may come to another result."""
    food0 = x.food[p, 0]
    food1 = x.food[p, 1]
    last_open = x.last_open[p]
    last_rivals = x.last_rivals[p]
    new0 = x.of_cell[start, 0]
    new1 = x.of_cell[start, 1]
    all0 = new0
    all1 = new1
    first0 = _0
    first1 = _0
    food = FAR
    move = 0
    while new0 | new1:
        move += 1
        row = min(move, last_rivals)
        mine0 = new0 & ~x.rivals[p, row, 0]
        mine1 = new1 & ~x.rivals[p, row, 1]
        first0 |= mine0
        first1 |= mine1
        if mine0 & food0 | mine1 & food1:
            food = min(food, move)
        row = min(move + 1, last_open)
        new0, new1 = beside(r, x.columns, new0, new1)
        new0 &= x.open[p, row, 0] & ~all0
        new1 &= x.open[p, row, 1] & ~all1
        all0 |= new0
        all1 |= new1
    return bits_in(all0) + bits_in(all1), bits_in(first0) + bits_in(first1), food, move
