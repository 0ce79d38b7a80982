"""Counter-based random numbers: each draw of a game is a pure function of (key, turn, purpose,
index).

There is no generator state. So the seed and the board's index determine a game, whatever the batch
size, the number of threads or the other boards. The mixer is the finaliser of SplitMix64 (Steele,
Lea, Flood, 2014)."""

from __future__ import annotations

import numpy as np

from envs.battlesnake.jit import kernel

# What a draw is for; each purpose has its own sequence of draws in a turn.
SPAWN_FOOD, START_CELLS, FIRST_FOOD, SHRINK, MAP_HAZARDS, MOVES = range(6)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27 = np.uint64(27)
_S30 = np.uint64(30)
_S31 = np.uint64(31)
_S32 = np.uint64(32)
_INDEX_BITS = np.uint64(24)
_PURPOSE_BITS = np.uint64(8)


@kernel
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits, so that every input bit changes every output bit with about even chance."""
    x = np.uint64(x)
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@kernel
def combine(key: np.uint64, number: int) -> np.uint64:
    """Return a new key, made from a key and a number (a board's index or a game's number)."""
    return mix(np.uint64(key) + (np.uint64(number) + np.uint64(1)) * _GOLDEN)


@kernel
def draw(key: np.uint64, turn: int, purpose: int, index: int) -> np.uint64:
    """Return 64 random bits, uint64."""
    counter = (np.uint64(turn) << _PURPOSE_BITS | np.uint64(purpose)) << _INDEX_BITS | np.uint64(
        index
    )
    return combine(key, counter)


@kernel
def below(key: np.uint64, turn: int, purpose: int, index: int, n: int) -> np.int64:
    """Return a uniform integer in [0, n), for 0 < n < 2**32. Its bias is below n / 2**32."""
    return np.int64(((draw(key, turn, purpose, index) >> _S32) * np.uint64(n)) >> _S32)


@kernel
def shuffle(values: np.ndarray, key: np.uint64, turn: int, purpose: int, index: int) -> None:
    """Shuffle `values` in place (Fisher-Yates) with the draws number index, index + 1, …"""
    for last in range(len(values) - 1, 0, -1):
        other = below(key, turn, purpose, index + last, last + 1)
        values[last], values[other] = values[other], values[last]
