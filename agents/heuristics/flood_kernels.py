"""Chooses moves by flood fills (`envs.battlesnake.reach`). Agents use this module."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.reach import ReachArrays, fill, health_on, new_reach_arrays, note_bodies
from envs.battlesnake.reach.on_bitboards import (
    ReachBitboards,
    fits,
    new_reach_bitboards,
    note_open,
    spread,
)
from envs.battlesnake.safety import write_safe_moves
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import MAX_SNAKES, Boards, State, head_cell, is_alive, step_offset

HUNGRY = 40
AMPLE = 1.5
# The parts of a move's score, the most important first. Each part is smaller than the unit of the
# one before.
_UNIT_TIER = 1 << 40
_UNIT_HAZARD = 1 << 28
_UNIT_FOOD = 1 << 14
_LOWEST = -(1 << 62)


class Scratch(NamedTuple):
    """Scratch arrays of `flood_moves`. Each call makes them once (`new_scratch`)."""

    reach: ReachArrays
    bitboards: ReachBitboards
    safe: np.ndarray
    """bool (1, 4): the moves that are not certain death."""


def new_scratch(state: State) -> Scratch:
    """Allocate the arrays for boards of this state's shape."""
    return Scratch(
        new_reach_arrays(state.arrays.occupied.shape[1]),
        new_reach_bitboards(state, 1),
        np.zeros((1, 4), np.bool_),
    )


def flood_moves(
    state: State,
    boards: np.ndarray,
    slots: np.ndarray,
    allowed: np.ndarray,
    *,
    hungry: int = HUNGRY,
    ample: float = AMPLE,
) -> np.ndarray:
    """Return moves int8 (n,) by the rules of `FloodFill`, for the snakes in `slots` (n,) of
    `boards` (n,).

    `allowed` is bool (4,) with at least one True. If all allowed moves are certain death, it is the
    first of them."""
    out = np.full(len(boards), allowed.argmax(), np.int8)
    scratch = new_scratch(state)
    boards = np.asarray(boards, np.int64)
    slots = np.asarray(slots, np.int64)
    _flood_rows(state.arrays, state.rules, boards, slots, allowed, hungry, ample, scratch, out)
    return out


@kernel
def _flood_rows(
    s: Boards,
    r: Rules,
    boards: np.ndarray,
    slots: np.ndarray,
    allowed: np.ndarray,
    hungry: int,
    ample: float,
    scratch: Scratch,
    out: np.ndarray,
) -> None:
    """Write the best move of each snake into `out` (n,), which must hold an allowed move
    already."""
    for n in range(len(boards)):
        b = boards[n]
        i = slots[n]
        write_safe_moves(s, b, i, r, scratch.safe, 0)
        highest = _LOWEST
        best = out[n]
        noted = -1
        for move in range(4):
            ahead = head_cell(s, b, i) + step_offset(r.width, move)
            target = s.opposite[ahead]
            # If every move is death, all count as safe. A body may still vanish with its owner; a
            # wall won't.
            if allowed[move] and scratch.safe[0, move] and (r.wrapped or target == ahead):
                grown = np.int64(s.food[b, target])
                if grown != noted:
                    noted = grown
                    begin_fills(s, b, i, r, grown, scratch)
                score = _score(s, b, i, r, target, hungry, ample, scratch)
                if score > highest:
                    highest = score
                    best = move
        out[n] = best


@kernel
def begin_fills(s: Boards, b: int, i: int, r: Rules, grown: int, scratch: Scratch) -> None:
    """Note what the fills of snake i have in common if it eats `grown` food on its next move."""
    note_bodies(s, b, i, r, grown, scratch.reach)
    if fits(s, b, r, scratch.bitboards):
        note_open(s, b, r, grown, scratch.reach.free_at, scratch.bitboards, 0)


@kernel
def fill_from(
    s: Boards, b: int, i: int, r: Rules, target: int, scratch: Scratch
) -> tuple[int, int, int]:
    """Return `area`, `food` and `relief` of a `Reach` from a cell, after `begin_fills`."""
    x = scratch.bitboards
    if fits(s, b, r, x):
        area, _, food, moves = spread(r, target, x, 0)
        if r.constrictor or moves <= max(1, health_on(s, b, r, target, s.health[b, i])):
            return area, food, 0
    area, food, relief, _, _ = fill(s, b, i, r, target, scratch.reach)
    return area, food, relief


@kernel
def _score(
    s: Boards, b: int, i: int, r: Rules, target: int, hungry: int, ample: float, scratch: Scratch
) -> int:
    """Return how good it is to move to a cell: the rules of `FloodFill` as one integer."""
    area, food, relief = fill_from(s, b, i, r, target, scratch)
    length = s.length[b, i]
    rivals = _count_rivals(s, b, i, r, target)
    # Too little room: prefer a cell where few can meet me, then the larger area.
    if area < length:
        tier = -rivals
        return (
            tier * _UNIT_TIER
            + area * _UNIT_HAZARD
            - min(relief, 1023) * _UNIT_FOOD
            - min(food, 1023)
        )
    eats = s.health[b, i] < hungry or (rivals == 0 and area >= ample * length)
    wish = 0
    if eats:
        wish = min(food, 1023)
    tier = MAX_SNAKES - rivals
    return tier * _UNIT_TIER - min(relief, 1023) * _UNIT_HAZARD - wish * _UNIT_FOOD + area


@kernel
def _count_rivals(s: Boards, b: int, i: int, r: Rules, target: int) -> int:
    """Return how many other snakes that are at least as long can move their head to the
    cell, too.
    """
    rivals = 0
    for j in range(s.cause.shape[1]):
        if j != i and is_alive(s, b, j) and s.length[b, j] >= s.length[b, i]:
            for move in range(4):
                cell = head_cell(s, b, j) + step_offset(r.width, move)
                if cell == target or (r.wrapped and s.opposite[cell] == target):
                    rivals += 1
                    break
    return rivals
