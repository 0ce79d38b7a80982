"""What a snake can reach: a flood fill that moves one cell a turn, among bodies whose tails move
on.

`envs.battlesnake.state` explains the kernels' one-letter arguments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import (
    FULL_HEALTH,
    Boards,
    State,
    body_cell,
    head_cell,
    is_alive,
    step_offset,
)

FAR = 1 << 20
"""Further than any cell."""
_NEVER = 32000


class ReachArrays(NamedTuple):
    """Scratch arrays of a fill on C padded cells, all int16 (C,)."""

    free_at: np.ndarray
    """The move after which a head may enter the cell."""
    latest: np.ndarray
    """The last move on which the snake comes to the cell before anybody else could."""
    health: np.ndarray
    """Health on arrival, 0 where the fill has not come."""
    moves: np.ndarray
    """The move on which the fill arrives."""
    queue: np.ndarray
    """The cells in the order in which the fill comes to them."""


class Reach(NamedTuple):
    """What one snake reaches by a flood fill from one cell."""

    area: int
    """Cells that can be reached alive, the first one included."""
    food: int
    """Moves to the nearest food, or `FAR`."""
    relief: int
    """Moves to the nearest cell without a harmful hazard, or `FAR`."""
    first: int
    """Cells that are reached by their `latest` move."""
    first_food: int
    """Moves to the nearest food among these, or `FAR`."""


def new_reach_arrays(cells: int) -> ReachArrays:
    """Allocate the arrays for boards of that many padded cells.

    `latest` is filled in as if no other snake could come anywhere.
    """
    free_at, health, moves, queue = (np.zeros(cells, np.int16) for _ in range(4))
    return ReachArrays(free_at, np.full(cells, _NEVER, np.int16), health, moves, queue)


def reach(state: State, board: int, slot: int, move: int) -> Reach:
    """Return the fill from one move, which must not leave the board unless the board is wrapped."""
    arrays = new_reach_arrays(state.arrays.occupied.shape[1])
    return Reach(*_reach_one(state.arrays, board, slot, state.rules, move, arrays))


@kernel
def _reach_one(
    s: Boards, b: int, i: int, r: Rules, move: int, arrays: ReachArrays
) -> tuple[int, int, int, int, int]:
    start = s.opposite[head_cell(s, b, i) + step_offset(r.width, move)]
    note_bodies(s, b, i, r, s.food[b, start], arrays)
    return fill(s, b, i, r, start, arrays)


@kernel
def note_bodies(s: Boards, b: int, i: int, r: Rules, grown: int, arrays: ReachArrays) -> None:
    """Write `free_at` of all cells, assuming that snake i eats `grown` food on its next move and
    nobody else eats.
    """
    arrays.free_at[:] = 0
    for j in range(s.cause.shape[1]):
        if is_alive(s, b, j):
            length = s.length[b, j]
            for entry in range(length):
                cell = body_cell(s, b, j, entry)
                leaves = length - entry
                if r.constrictor:
                    leaves = _NEVER
                elif j == i and entry < length - 1:
                    leaves += grown
                arrays.free_at[cell] = max(arrays.free_at[cell], leaves)


@kernel
def fill(
    s: Boards, b: int, i: int, r: Rules, start: int, arrays: ReachArrays
) -> tuple[int, int, int, int, int]:
    """Breadth-first search from `start`, entered on move 1. Returns what a `Reach` has.
    `note_bodies` must have been called.

    The fill enters a cell on move k if the body entries there will have left by then, and if hunger
    and hazards on the way leave the snake alive; food on the way heals. Bodies of constrictor games
    never leave. On a wrapped board it crosses the edges."""
    food_on = s.food[b]
    hazards = s.hazards[b]
    free_at, latest, on_arrival, moves, queue = arrays
    on_arrival[:] = 0
    first = 0
    last = 0
    area = 0
    food = FAR
    relief = FAR
    soonest = 0
    soonest_food = FAR
    health = max(1, health_on(s, b, r, start, s.health[b, i]))
    queue[0] = start
    moves[start] = 1
    on_arrival[start] = health
    while first <= last:
        # Unsigned indices, here as elsewhere, spare the kernel the question whether they count from
        # the end.
        cell = np.int64(queue[np.uint64(first)])
        first += 1
        area += 1
        move = int(moves[np.uint64(cell)])
        is_first = move <= latest[np.uint64(cell)]
        soonest += is_first
        if food_on[np.uint64(cell)]:
            food = min(food, move)
            if is_first:
                soonest_food = min(soonest_food, move)
        if hazards[np.uint64(cell)] * r.hazard_damage <= 0:
            relief = min(relief, move - 1)
        for direction in range(4):
            other = _beside(s, r, cell, direction)
            if other < 0 or on_arrival[np.uint64(other)] or move + 1 < free_at[np.uint64(other)]:
                continue
            health = health_on(s, b, r, other, on_arrival[np.uint64(cell)])
            if health > 0:
                last += 1
                queue[np.uint64(last)] = other
                moves[np.uint64(other)] = move + 1
                on_arrival[np.uint64(other)] = health
    return area, food, relief, soonest, soonest_food


@kernel
def _beside(s: Boards, r: Rules, cell: int, direction: int) -> int:
    """The cell to which a step leads; -1 if it leads off the board."""
    other = cell + step_offset(r.width, direction)
    if s.opposite[np.uint64(other)] == other:
        return other
    if r.wrapped:
        return int(s.opposite[np.uint64(other)])
    return -1


@kernel
def health_on(s: Boards, b: int, r: Rules, cell: int, health: int) -> int:
    """Health after a step onto the cell; 0 or less is death."""
    if s.food[b, np.uint64(cell)]:
        return FULL_HEALTH
    health_after = min(FULL_HEALTH, health - 1 - s.hazards[b, np.uint64(cell)] * r.hazard_damage)
    if r.constrictor and health_after > 0:
        return FULL_HEALTH
    return health_after


@kernel
def note_arrivals(
    s: Boards, b: int, j: int, r: Rules, arrays: ReachArrays, arrivals: np.ndarray
) -> None:
    """Write into `arrivals` (C,) on which move snake j could be on each cell, if hunger and hazards
    didn't count.

    It is 0 on its head, and larger than any move where it can't come. `note_bodies` must have been
    called."""
    free_at = arrays.free_at
    queue = arrays.queue
    arrivals[:] = _NEVER
    head = head_cell(s, b, j)
    queue[0] = head
    arrivals[head] = 0
    first = 0
    last = 0
    while first <= last:
        cell = np.int64(queue[np.uint64(first)])
        first += 1
        move = arrivals[np.uint64(cell)] + 1
        for direction in range(4):
            other = _beside(s, r, cell, direction)
            if (
                other >= 0
                and arrivals[np.uint64(other)] == _NEVER
                and move >= free_at[np.uint64(other)]
            ):
                last += 1
                queue[np.uint64(last)] = other
                arrivals[np.uint64(other)] = move


@kernel
def note_latest(s: Boards, b: int, i: int, arrivals: np.ndarray, arrays: ReachArrays) -> None:
    """Write `latest` for snake i, from all snakes' `arrivals` (S, C). Of two that come at once, the
    longer one is first.
    """
    arrays.latest[:] = _NEVER
    for j in range(s.cause.shape[1]):
        if j != i and is_alive(s, b, j):
            late = int(s.length[b, j] >= s.length[b, i])
            for cell in range(arrivals.shape[1]):
                arrays.latest[cell] = min(arrays.latest[cell], arrivals[j, cell] - late)
