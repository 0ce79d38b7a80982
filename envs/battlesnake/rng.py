"""Counter-based random numbers: a game's draws are a pure function of (key, turn, purpose, index).

There is no generator state, so a seed and a board's index determine a game, whatever the batch size, the thread count or
what the other boards do. The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
"""

from __future__ import annotations

import numpy as np

from envs.battlesnake.kernels import kernel

# What a draw is for; each purpose has its own sequence of draws in a turn.
SPAWN_FOOD, START_CELLS, FIRST_FOOD, SHRINK, MAP_HAZARDS, MOVES = range(6)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_INDEX_BITS, _PURPOSE_BITS = np.uint64(24), np.uint64(8)


@kernel
def mix(x):
    """Scramble 64 bits: every input bit reaches every output bit."""
    x = np.uint64(x)
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@kernel
def combine(key, number):
    """A new key from a key and a number (a board's index, a game's ordinal)."""
    return mix(np.uint64(key) + (np.uint64(number) + np.uint64(1)) * _GOLDEN)


@kernel
def draw(key, turn, purpose, index):
    """64 random bits, uint64."""
    counter = (np.uint64(turn) << _PURPOSE_BITS | np.uint64(purpose)) << _INDEX_BITS | np.uint64(index)
    return combine(key, counter)


@kernel
def below(key, turn, purpose, index, n):
    """A uniform integer in [0, n), for 0 < n < 2**32 (bias under n / 2**32)."""
    return np.int64(((draw(key, turn, purpose, index) >> _S32) * np.uint64(n)) >> _S32)


@kernel
def shuffle(values, key, turn, purpose, index):
    """Shuffle `values` in place (Fisher-Yates), using the draws index, index + 1, …"""
    for last in range(len(values) - 1, 0, -1):
        other = below(key, turn, purpose, index + last, last + 1)
        values[last], values[other] = values[other], values[last]
