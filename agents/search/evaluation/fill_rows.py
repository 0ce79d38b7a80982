"""The territory fill on rows, for boards of any size and wrapped ones.

A row of the padded board is one 32-bit word, since the widest board has 27 columns with its
padding. So a region grows by one move with a few operations per row, and a vector instruction
handles eight or more rows: 7 ns for 16 rows."""

from __future__ import annotations

import numpy as np

from agents.search.evaluation.territory import NO_FOOD, Territory, serve_longest_first
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, body_cell, head_cell, is_alive

_FEW_ROWS = 16
_ONE = np.uint32(1)
_ZERO = np.uint32(0)
_55 = np.uint32(0x55555555)
_33 = np.uint32(0x33333333)
_0F = np.uint32(0x0F0F0F0F)
_01 = np.uint32(0x01010101)
_S1 = np.uint32(1)
_S2 = np.uint32(2)
_S4 = np.uint32(4)
_S24 = np.uint32(24)


@kernel
def divide_rows(s: Boards, r: Rules, f: Territory, viewer: int) -> None:
    """Fill board 0 as `fill.divide` does, with one word per row."""
    _start(s, r, f, viewer)
    few = r.height + 2 <= _FEW_ROWS
    old = 0
    for k in range(1, f.steps[0] + 1):
        if not r.constrictor:
            _release(s, f, k)
        changed = _ZERO
        for n in range(s.num_alive[0]):
            i = f.order[n]
            if r.wrapped:
                _wrap(r, f.regions[old, i])
            if few:
                new, hit = _grow_few(f.regions[old, i], f.regions[1 - old, i], f.open, f.food)
            else:
                new, hit = _grow_many(f.regions[old, i], f.regions[1 - old, i], f.open, f.food)
            changed |= new
            if hit and f.food_distance[i] == NO_FOOD:
                f.food_distance[i] = k
        old = 1 - old
        if changed == 0 and (k > 3 or r.constrictor):
            break
    for n in range(s.num_alive[0]):
        _count(r, f, f.order[n], old)


@kernel
def _start(s: Boards, r: Rules, f: Territory, viewer: int) -> None:
    """Give every living snake its head, and open the enterable cells that no body covers."""
    f.food[:] = 0
    for n in range(f.num_food_cells[0]):
        cell = f.food_cells[n]
        if s.food[0, cell]:
            f.food[f.row[cell]] |= f.bit[cell]
    for y in range(len(f.open)):
        f.open[y] = f.enterable[y]
    serve_longest_first(s, f, viewer)
    for i in range(s.cause.shape[1]):
        if not is_alive(s, 0, i):
            continue
        for entry in range(s.length[0, i]):
            cell = body_cell(s, 0, i, entry)
            f.open[f.row[cell]] &= ~f.bit[cell]
        f.regions[0, i] = 0
        head = head_cell(s, 0, i)
        f.regions[0, i, f.row[head]] = f.bit[head]
        f.food_distance[i] = NO_FOOD


@kernel
def _release(s: Boards, f: Territory, k: int) -> None:
    """Open the cells that bodies leave with move k. Of entries on one cell the one nearest to the
    head leaves last.
    """
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i):
            entry = s.length[0, i] - k
            if entry > 0:
                cell = body_cell(s, 0, i, entry)
                if cell != body_cell(s, 0, i, entry - 1):
                    f.open[f.row[cell]] |= f.bit[cell] & f.enterable[f.row[cell]]


@kernel
def _wrap(r: Rules, region: np.ndarray) -> None:
    """Copy the edges into the padding beyond the opposite edges."""
    first = np.uint32(1)
    last = np.uint32(r.width)
    for y in range(1, r.height + 1):
        row = region[y] & ~(_ONE | _ONE << (last + _ONE))
        region[y] = row | (row >> last & _ONE) | (row >> first & _ONE) << (last + _ONE)
    region[0] = region[r.height]
    region[r.height + 1] = region[1]


@kernel
def _grow_few(
    old: np.ndarray, new: np.ndarray, open_: np.ndarray, food: np.ndarray
) -> tuple[np.uint32, np.uint32]:
    """Write a region as it is one move later into `new`, on a board of at most 14 rows.

    Return the cells that are new in it, and those of them with food, as bits without their rows."""
    changed = _ZERO
    hit = _ZERO
    for y in range(1, 1 + 16):
        row = old[y]
        gained = (row << _S1 | row >> _S1 | old[y - 1] | old[y + 1]) & open_[y]
        new[y] = row | gained
        open_[y] = open_[y] & ~gained
        changed |= gained
        hit |= gained & food[y]
    return changed, hit


@kernel
def _grow_many(
    old: np.ndarray, new: np.ndarray, open_: np.ndarray, food: np.ndarray
) -> tuple[np.uint32, np.uint32]:
    """Do what `_grow_few` does on a board of more than 14 rows. The length of the loop must be a
    constant, so that it becomes vector instructions.
    """
    changed = _ZERO
    hit = _ZERO
    for y in range(1, 1 + 32):
        row = old[y]
        gained = (row << _S1 | row >> _S1 | old[y - 1] | old[y + 1]) & open_[y]
        new[y] = row | gained
        open_[y] = open_[y] & ~gained
        changed |= gained
        hit |= gained & food[y]
    return changed, hit


@kernel
def _count(r: Rules, f: Territory, i: int, generation: int) -> None:
    """Write `area` and `clean_area` of snake i, from the regions of this generation."""
    area = 0
    clean = 0
    inside = (_ONE << np.uint32(r.width + 1)) - _ONE - _ONE
    for y in range(1, r.height + 1):
        row = f.regions[generation, i, y] & inside
        area += bits_in(row)
        clean += bits_in(row & f.clean[y])
    f.area[i] = area
    f.clean_area[i] = clean


@kernel
def bits_in(word: np.uint32) -> np.int64:
    """Return how many bits of a uint32 are set. (The compiler recognises this form and uses the
    processor's instruction.)
    """
    word = word - (word >> _S1 & _55)
    word = (word & _33) + (word >> _S2 & _33)
    word = (word + (word >> _S4)) & _0F
    return np.int64(np.uint32(word * _01) >> _S24)
