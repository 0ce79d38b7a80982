"""The flood fill itself: what a snake can reach from each move, and the move that it leads to. Agents stand on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake.kernels import kernel
from envs.battlesnake.safety import write_safe_moves
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import FULL_HEALTH, MAX_SNAKES, Boards, State, body_cell, head_cell, is_alive, step_offset

HUNGRY, AMPLE = 40, 1.5
_FAR = 1 << 20
_NEVER = 32000
# Score of a move, most important part first; each part is smaller than the next one's unit.
_UNIT_TIER, _UNIT_HAZARD, _UNIT_FOOD = 1 << 40, 1 << 28, 1 << 14
_LOWEST = -(1 << 62)


class Scratch(NamedTuple):
    """Scratch arrays of a flood fill on C padded cells. Each call of `act_batch` makes them once."""

    free_at: np.ndarray  # int16 (C,): the move after which a head may enter the cell
    health: np.ndarray  # int16 (C,): health on arrival, 0 where the fill has not come
    moves: np.ndarray  # int16 (C,): the move on which the fill arrives
    queue: np.ndarray  # int16 (C,)
    safe: np.ndarray  # bool (1, 4)


class Reach(NamedTuple):
    """What a flood fill found."""

    area: int  # cells that can be reached alive, the first one included
    food: int  # moves to the nearest food, or _FAR
    relief: int  # moves to the nearest cell without a harmful hazard, or _FAR


def flood_moves(
    state: State, boards: np.ndarray, slots: np.ndarray, allowed: np.ndarray, *, hungry: int = HUNGRY, ample: float = AMPLE
) -> np.ndarray:
    """Return moves int8 (n,) by the rules of `FloodFill`, for the snakes in `slots` (n,) of `boards` (n,).

    `allowed` is bool (4,) with at least one True. If all allowed moves are certain death, it is the first of them.
    """
    out = np.full(len(boards), allowed.argmax(), np.int8)
    scratch = new_scratch(state)
    boards, slots = np.asarray(boards, np.int64), np.asarray(slots, np.int64)
    _flood_rows(state.arrays, state.rules, boards, slots, allowed, hungry, ample, scratch, out)
    return out


def new_scratch(state: State) -> Scratch:
    """Allocate the scratch arrays for boards of this state's size."""
    cells = state.arrays.occupied.shape[1]
    free_at, health, moves, queue = (np.zeros(cells, np.int16) for _ in range(4))
    return Scratch(free_at, health, moves, queue, safe=np.zeros((1, 4), np.bool_))


def reach(state: State, board: int, slot: int, move: int) -> Reach:
    """Return the flood fill of one move, which must not leave the board unless the board is wrapped."""
    return Reach(*_reach_one(state.arrays, board, slot, state.rules, move, new_scratch(state)))


@kernel
def _reach_one(s: Boards, b: int, i: int, r: Rules, move: int, scratch: Scratch) -> tuple[int, int, int]:
    return _fill(s, b, i, r, s.opposite[head_cell(s, b, i) + step_offset(r.width, move)], scratch)


@kernel
def _flood_rows(
    s: Boards,
    r: Rules,
    boards: np.ndarray,
    slots: np.ndarray,
    allowed: np.ndarray,
    hungry: int,
    ample: int,
    scratch: Scratch,
    out: np.ndarray,
) -> None:
    for n in range(len(boards)):
        b, i = boards[n], slots[n]
        write_safe_moves(s, b, i, r, scratch.safe, 0)
        highest, best = _LOWEST, out[n]
        for move in range(4):
            ahead = head_cell(s, b, i) + step_offset(r.width, move)
            target = s.opposite[ahead]
            # Where every move is death all count as safe; a body may yet vanish with its owner, a wall will not.
            if allowed[move] and scratch.safe[0, move] and (r.wrapped or target == ahead):
                score = _score(s, b, i, r, target, hungry, ample, scratch)
                if score > highest:
                    highest, best = score, move
        out[n] = best


@kernel
def _score(s: Boards, b: int, i: int, r: Rules, target: int, hungry: int, ample: int, scratch: Scratch) -> int:
    """How good it is to move to a cell: the rules of `FloodFill` as one integer."""
    area, food, relief = _fill(s, b, i, r, target, scratch)
    length = s.length[b, i]
    roomy = area >= length
    rivals = _count_rivals(s, b, i, r, target)
    tier = (MAX_SNAKES if roomy else 0) - rivals
    if not roomy:
        return tier * _UNIT_TIER + area * _UNIT_HAZARD - min(relief, 1023) * _UNIT_FOOD - min(food, 1023)
    eats = s.health[b, i] < hungry or (rivals == 0 and area >= ample * length)
    wish = min(food, 1023) if eats else 0
    return tier * _UNIT_TIER - min(relief, 1023) * _UNIT_HAZARD - wish * _UNIT_FOOD + area


@kernel
def _count_rivals(s: Boards, b: int, i: int, r: Rules, target: int) -> int:
    """How many other snakes at least as long can move their head to the cell too."""
    rivals = 0
    for j in range(s.cause.shape[1]):
        if j != i and is_alive(s, b, j) and s.length[b, j] >= s.length[b, i]:
            for move in range(4):
                cell = head_cell(s, b, j) + step_offset(r.width, move)
                if cell == target or (r.wrapped and s.opposite[cell] == target):
                    rivals += 1
                    break
    return rivals


@kernel
def _note_bodies(s: Boards, b: int, i: int, r: Rules, grown: int, scratch: Scratch) -> None:
    """Write `free_at` of all cells, if snake i eats `grown` food on its next move and nobody else does."""
    scratch.free_at[:] = 0
    for j in range(s.cause.shape[1]):
        if is_alive(s, b, j):
            length = s.length[b, j]
            for entry in range(length):
                cell = body_cell(s, b, j, entry)
                leaves = length - entry + (grown if j == i and entry < length - 1 else 0)
                scratch.free_at[cell] = max(scratch.free_at[cell], _NEVER if r.constrictor else leaves)


@kernel
def _fill(s: Boards, b: int, i: int, r: Rules, start: int, scratch: Scratch) -> tuple[int, int, int]:
    """Breadth-first search from `start`, entered on move 1. Returns (area, food, relief) as `Reach` has them."""
    _note_bodies(s, b, i, r, s.food[b, start], scratch)
    scratch.health[:] = 0
    first, last = 0, 0
    area, food, relief = 0, _FAR, _FAR
    health = max(1, _health_on(s, b, r, start, s.health[b, i]))
    scratch.queue[0], scratch.moves[start], scratch.health[start] = start, 1, health
    while first <= last:
        cell = scratch.queue[first]
        first += 1
        area += 1
        move = scratch.moves[cell]
        if s.food[b, cell]:
            food = min(food, move)
        if s.hazards[b, cell] * r.hazard_damage <= 0:
            relief = min(relief, move - 1)
        for direction in range(4):
            other = cell + step_offset(r.width, direction)
            if s.opposite[other] != other:
                if not r.wrapped:
                    continue
                other = s.opposite[other]
            if scratch.health[other] or move + 1 < scratch.free_at[other]:
                continue
            health = _health_on(s, b, r, other, scratch.health[cell])
            if health > 0:
                last += 1
                scratch.queue[last], scratch.moves[other], scratch.health[other] = other, move + 1, health
    return area, food, relief


@kernel
def _health_on(s: Boards, b: int, r: Rules, cell: int, health: int) -> int:
    """Health after a step onto the cell; 0 or less is death."""
    if s.food[b, cell]:
        return FULL_HEALTH
    left = min(FULL_HEALTH, health - 1 - s.hazards[b, cell] * r.hazard_damage)
    return FULL_HEALTH if r.constrictor and left > 0 else left
