"""Bitboards: sets of cells as two 64-bit words, for boards of up to 128 cells.

Bit y * width + x of the 128 is the cell (x, y), without padding. A set on an 11×11 board grows by a
move in a dozen shifts."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules

_WORD_BITS = 64
MAX_CELLS = 2 * _WORD_BITS
_1 = np.uint64(1)
_63 = np.uint64(63)
_64 = np.uint64(64)
_55 = np.uint64(0x5555555555555555)
_33 = np.uint64(0x3333333333333333)
_0F = np.uint64(0x0F0F0F0F0F0F0F0F)
_01 = np.uint64(0x0101010101010101)
_S2 = np.uint64(2)
_S4 = np.uint64(4)
_S56 = np.uint64(56)


class Bitboards(NamedTuple):
    """The tables for boards of one size. All are zeros if the board has too many cells or is one
    cell wide.
    """

    of_cell: np.ndarray
    """uint64 (C, 2): the set of one padded cell; empty off the board."""
    columns: np.ndarray
    """uint64 (2, 2): all cells but the leftmost column, and all but the rightmost one."""


@lru_cache(maxsize=16)
def make_bitboards(width: int, height: int) -> Bitboards:
    """Return the tables for boards of that size, which are shared and must not be changed."""
    y, x = np.divmod(np.arange((width + 2) * (height + 2)), width + 2)
    of_cell = np.zeros((len(x), 2), np.uint64)
    on_board = (x > 0) & (x <= width) & (y > 0) & (y <= height)
    if width > 1 and width * height <= MAX_CELLS:
        word, bit = np.divmod((y - 1) * width + x - 1, _WORD_BITS)
        of_cell[on_board, word[on_board]] = np.uint64(1) << bit[on_board].astype(np.uint64)
    but_first_column = of_cell[on_board & (x > 1)].sum(axis=0, dtype=np.uint64)
    but_last_column = of_cell[on_board & (x < width)].sum(axis=0, dtype=np.uint64)
    return Bitboards(of_cell, np.stack([but_first_column, but_last_column]))


@kernel
def beside(
    r: Rules, columns: np.ndarray, a: np.uint64, b: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return the cells beside a set: right and left of it within the rows, a row above it and a row
    below. Bits beyond the board may be set, too.
    """
    width = np.uint64(r.width)
    back = _64 - width
    low = (
        (a << _1 & columns[0, 0])
        | ((a >> _1 | b << _63) & columns[1, 0])
        | a << width
        | (a >> width | b << back)
    )
    high = (
        ((b << _1 | a >> _63) & columns[0, 1])
        | (b >> _1 & columns[1, 1])
        | (b << width | a >> back)
        | b >> width
    )
    return low, high


@kernel
def bits_in(word: np.uint64) -> np.int64:
    """Return how many bits of a uint64 are set, in a form that the compiler turns into the
    processor's instruction.
    """
    word = word - (word >> _1 & _55)
    word = (word & _33) + (word >> _S2 & _33)
    word = (word + (word >> _S4)) & _0F
    return np.int64(np.uint64(word * _01) >> _S56)
