"""Random choices that depend on the game, but not on the order in which boards are asked about."""

from __future__ import annotations

import numpy as np

from envs.battlesnake import rng
from envs.battlesnake.jit import kernel
from envs.battlesnake.state import State
from envs.common.errors import whole_seed

# 32 bits: enough to choose by, and few enough that `uniform * total` never rounds up to the total.
_TO_UNIT = 2.0**-32


def uniforms(state: State, boards: np.ndarray, slots: np.ndarray, *, seed: int) -> np.ndarray:
    """Return a number in [0, 1) for each snake, float64 (n,), as a function of (seed, the game's
    key, its turn, the slot).

    The numbers are multiples of 2**-32. Raises `ConfigError` unless `seed` is an integer, of which
    the lowest 64 bits count."""
    out = np.empty(len(boards))
    a = state.arrays
    seed64 = np.uint64(whole_seed(seed) & 0xFFFFFFFFFFFFFFFF)
    _draw(a.key, a.turn, seed64, np.asarray(boards, np.int64), np.asarray(slots, np.int64), out)
    return out


def choose(weights: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Choose a column of each row, intp (n,). Column k has a chance proportional to weights[row, k]
    >= 0, with weights (n, A).

    `uniform`, (n,) in [0, 1), are the draws.
    """
    cumulative = np.cumsum(weights, axis=1, dtype=np.float64)
    return (cumulative > (uniform * cumulative[:, -1])[:, None]).argmax(axis=1)


@kernel
def _draw(
    key: np.ndarray,
    turn: np.ndarray,
    seed: np.uint64,
    boards: np.ndarray,
    slots: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the numbers of `uniforms` into `out` (n,)."""
    for n in range(len(boards)):
        b = boards[n]
        bits = rng.draw(rng.combine(key[b], seed), turn[b], rng.MOVES, slots[n])
        out[n] = np.float64(bits >> np.uint64(32)) * _TO_UNIT
