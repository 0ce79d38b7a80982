"""A table of positions that were searched before: fixed size, always the newer one of two that share a place.

Threads share it without locks: a row holds key ^ word beside the word, so that a row written half by one and half by another
thread fits no key (Hyatt and Mann, "A lockless transposition-table implementation for parallel search", ICGA Journal, 2002).
"""

from __future__ import annotations

import numpy as np

from agents.search.judgement import SURE
from envs.battlesnake.kernels import kernel

EXACT, AT_LEAST, AT_MOST = range(3)
NO_MOVE = 4
_DEPTH_0 = 64
_VALUE, _DEPTH, _BOUND = np.int64(1 << 32), np.int64(1 << 16), np.int64(1 << 8)


def new_table(bits: int) -> np.ndarray:
    """Room for 2**bits positions, uint64 (2**bits, 2): key ^ word, and the word that holds what is known."""
    return np.zeros((1 << bits, 2), np.uint64)


@kernel
def store(table, key, value, depth, bound, move, turn):
    """Remember a position on turn `turn` of the search; proven scores count from the position itself."""
    if value > SURE:
        value += turn
    elif value < -SURE:
        value -= turn
    place = np.int64(key & np.uint64(len(table) - 1))
    word = np.uint64(value * _VALUE + (depth + _DEPTH_0) * _DEPTH + bound * _BOUND + move)
    table[place, 0], table[place, 1] = key ^ word, word


@kernel
def look_up(table, key, turn):
    """(value, depth, bound, move) of a position on turn `turn`; the move is NO_MOVE if it isn't there."""
    place = np.int64(key & np.uint64(len(table) - 1))
    check, known = table[place, 0], table[place, 1]
    if check ^ known != key:
        return 0, -_DEPTH_0, EXACT, NO_MOVE
    word = np.int64(known)
    value, rest = word >> 32, word & 0xFFFFFFFF
    if value > SURE:
        value -= turn
    elif value < -SURE:
        value += turn
    return value, (rest >> 16) - _DEPTH_0, rest >> 8 & 255, rest & 255
