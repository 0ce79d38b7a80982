"""Which moves are certain death. Training, evaluation and serving share this mask.

A move is masked if its cell is off the board, if the cell holds a body entry that will still be
there after all snakes have moved, or if hunger and hazards leave no health there. Head-to-head
meetings depend on what the others choose, so they are never masked. A body can vanish in the same
turn because its owner starves or leaves the board; the mask doesn't speculate on that."""

from __future__ import annotations

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, State, head_cell, is_alive, step_offset, tail_cell


def safe_moves(state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Return bool (n, 4) for n pairs of (board, slot): False where the move is certain death.

    The order is up, down, left, right.

    If every move is certain death, or the snake is dead, all four are True, so that a mask always
    leaves a choice."""
    out = np.empty((len(boards), 4), np.bool_)
    _safe_rows(state.arrays, state.rules, np.asarray(boards), np.asarray(slots), out)
    return out


@kernel
def _safe_rows(s: Boards, r: Rules, boards: np.ndarray, slots: np.ndarray, out: np.ndarray) -> None:
    for n in range(len(boards)):
        write_safe_moves(s, boards[n], slots[n], r, out, n)


@kernel
def move_tails(s: Boards, b: int, entries: int) -> None:
    """Add `entries` to the cell of every living snake's tail: -1 takes the tails off the board, 1
    puts them back.

    In between, call the other functions with `tails_gone=True`. They then need not look for the
    tails at every move of every snake."""
    for j in range(s.cause.shape[1]):
        if is_alive(s, b, j):
            s.occupied[b, tail_cell(s, b, j)] += entries


@kernel
def write_safe_moves(
    s: Boards, b: int, i: int, r: Rules, out: np.ndarray, row: int, tails_gone: bool = False
) -> None:
    """Write `safe_moves` of snake i of board b into out[row]. For `tails_gone` see `move_tails`."""
    any_safe = False
    if is_alive(s, b, i):
        head = head_cell(s, b, i)
        for move in range(4):
            safe = not is_certain_death(s, b, i, r, head + step_offset(r.width, move), tails_gone)
            out[row, move] = safe
            any_safe = any_safe or safe
    if not any_safe:
        for move in range(4):
            out[row, move] = True


@kernel
def is_certain_death(
    s: Boards, b: int, i: int, r: Rules, target: int, tails_gone: bool = False
) -> bool:
    """Whether moving snake i's head to the padded cell `target` kills it whatever the others do.

    `tails_gone` says that `move_tails` has taken the tails off the board.
    """
    if s.opposite[target] != target:
        if not r.wrapped:
            return True
        target = s.opposite[target]
    if s.occupied[b, target] > 0 and (tails_gone or will_be_blocked(s, b, target)):
        return True
    if s.health[b, i] > 1 and s.num_hazards[b] == 0:
        return False
    if s.food[b, target]:
        return False
    return s.health[b, i] - 1 - s.hazards[b, target] * r.hazard_damage <= 0


@kernel
def will_be_blocked(s: Boards, b: int, cell: int) -> bool:
    """Whether a living body entry will be on the cell once every tail has moved on."""
    entries = s.occupied[b, cell]
    for j in range(s.cause.shape[1]):
        if is_alive(s, b, j) and tail_cell(s, b, j) == cell:
            entries -= 1
    return entries > 0
