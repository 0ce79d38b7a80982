"""A table of positions that were searched before: fixed size, always the newer one of two that share a place."""

from __future__ import annotations

import numpy as np

from agents.search.judgement import SURE
from envs.battlesnake.kernels import kernel

EXACT, AT_LEAST, AT_MOST = range(3)
NO_MOVE = 4
_DEPTH_0 = 64
_VALUE, _DEPTH, _BOUND = np.int64(1 << 32), np.int64(1 << 16), np.int64(1 << 8)


def new_table(bits: int) -> np.ndarray:
    """Room for 2**bits positions, uint64 (2**bits, 2): key, and what is known in one word."""
    return np.zeros((1 << bits, 2), np.uint64)


@kernel
def store(table, key, value, depth, bound, move, turn):
    """Remember a position on turn `turn` of the search; proven scores count from the position itself."""
    if value > SURE:
        value += turn
    elif value < -SURE:
        value -= turn
    place = np.int64(key & np.uint64(len(table) - 1))
    table[place, 0] = key
    table[place, 1] = np.uint64(value * _VALUE + (depth + _DEPTH_0) * _DEPTH + bound * _BOUND + move)


@kernel
def look_up(table, key, turn):
    """(value, depth, bound, move) of a position on turn `turn`; the move is NO_MOVE if it isn't there."""
    place = np.int64(key & np.uint64(len(table) - 1))
    if table[place, 0] != key:
        return 0, -_DEPTH_0, EXACT, NO_MOVE
    word = np.int64(table[place, 1])
    value, rest = word >> 32, word & 0xFFFFFFFF
    if value > SURE:
        value -= turn
    elif value < -SURE:
        value += turn
    return value, (rest >> 16) - _DEPTH_0, rest >> 8 & 255, rest & 255
