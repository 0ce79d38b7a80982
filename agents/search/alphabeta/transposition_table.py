"""A table of positions that were searched before. Its size is fixed; of two positions that share a
place, the newer one stays.

Threads share it without locks. A row holds key ^ word beside the word, so a row that two threads
have half written each fits no key (Hyatt and Mann, "A lockless transposition-table implementation
for parallel search", ICGA Journal, 2002)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from agents.search.evaluation.evaluate import SURE
from envs.battlesnake.jit import kernel

_Number: TypeAlias = int | np.int64

# What a score is, of a position that was searched in a window.
EXACT = 0
AT_LEAST = 1
AT_MOST = 2
NO_MOVE = 4
"""The move of a position that isn't in the table."""
# A word holds, from the highest bit: the value in 32 bits, then depth + 64, bound and move.
_DEPTH_0 = 64
_VALUE = np.int64(1 << 32)
_DEPTH = np.int64(1 << 16)
_BOUND = np.int64(1 << 8)


def new_table(bits: int) -> np.ndarray:
    """Allocate a table for 2**bits positions, uint64 (2**bits, 2): key ^ word, and the word that
    holds what is known.
    """
    return np.zeros((1 << bits, 2), np.uint64)


@kernel
def store(
    table: np.ndarray, key: np.uint64, value: int, depth: int, bound: int, move: int, turn: int
) -> None:
    """Remember a position that was reached on turn `turn` of the search.

    Proven scores are stored as counted from the position, because it may be met again on another
    turn."""
    if value > SURE:
        value += turn
    elif value < -SURE:
        value -= turn
    place = np.int64(key & np.uint64(len(table) - 1))
    word = np.uint64(value * _VALUE + (depth + _DEPTH_0) * _DEPTH + bound * _BOUND + move)
    table[place, 0] = key ^ word
    table[place, 1] = word


@kernel
def look_up(
    table: np.ndarray, key: np.uint64, turn: int
) -> tuple[_Number, _Number, _Number, _Number]:
    """Return (value, depth, bound, move) of a position on turn `turn`. The move is NO_MOVE if the
    position isn't there.
    """
    place = np.int64(key & np.uint64(len(table) - 1))
    check = table[place, 0]
    stored = table[place, 1]
    if check ^ stored != key:
        return 0, -_DEPTH_0, EXACT, NO_MOVE
    word = np.int64(stored)
    value = word >> 32
    rest = word & 0xFFFFFFFF
    if value > SURE:
        value -= turn
    elif value < -SURE:
        value += turn
    return value, (rest >> 16) - _DEPTH_0, rest >> 8 & 255, rest & 255
