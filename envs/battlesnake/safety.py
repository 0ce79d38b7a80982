"""Which moves are certain death: the mask that training, evaluation and serving share.

A move is masked if its cell is off the board, or holds a body entry that will still be there after all snakes have moved,
or if hunger and hazards leave no health there. Head-to-head meetings depend on the others' choice and are never masked. (A
body can vanish in the same turn because its owner starves or leaves the board; the mask doesn't speculate on that.)
"""

from __future__ import annotations

import numpy as np

from envs.battlesnake.kernels import kernel
from envs.battlesnake.state import State, head_cell, is_alive, step_offset, tail_cell


def safe_moves(state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Bool (n, 4) for n pairs of (board, slot), in the order up, down, left, right: False where the move is certain death.

    If every move is death, or the snake is dead, all four are True: a mask always leaves a choice.
    """
    out = np.empty((len(boards), 4), np.bool_)
    _safe_rows(state.arrays, state.rules, np.asarray(boards), np.asarray(slots), out)
    return out


@kernel
def _safe_rows(s, r, boards, slots, out):
    for n in range(len(boards)):
        write_safe_moves(s, boards[n], slots[n], r, out, n)


@kernel
def board_safe_moves(s, b, r, out):
    """`safe_moves` for all slots of board b; out: bool (S, 4)."""
    for i in range(s.cause.shape[1]):
        write_safe_moves(s, b, i, r, out, i)


@kernel
def move_tails(s, b, entries):
    """Add `entries` to the cell of every living snake's tail: -1 as if all had moved on, then 1 to put them back.

    In between, `tails_gone=True` saves looking for the tails at every move of every snake.
    """
    for j in range(s.cause.shape[1]):
        if is_alive(s, b, j):
            s.occupied[b, tail_cell(s, b, j)] += entries


@kernel
def write_safe_moves(s, b, i, r, out, row, tails_gone=False):
    """`safe_moves` of one snake into out[row]."""
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
def is_certain_death(s, b, i, r, target, tails_gone=False):
    """Whether moving snake i's head to the padded cell `target` kills it whatever the others do.

    `tails_gone`: `move_tails` has taken the tails off the board.
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
def will_be_blocked(s, b, cell):
    """Whether a living body entry will be on the cell once every tail has moved on."""
    entries = s.occupied[b, cell]
    for j in range(s.cause.shape[1]):
        if is_alive(s, b, j) and tail_cell(s, b, j) == cell:
            entries -= 1
    return entries > 0
