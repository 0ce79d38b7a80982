"""Follows n steps in time rings `[rings, length, rows]`: what they paid, and how they ended."""

from __future__ import annotations

import numba
import numpy as np

GOES_ON = 0
TERMINATED = 1
TRUNCATED = 2
LOST = 3
"""What a step did to its row's episode. LOST means that it continued, but that the next step was
never seen.
"""


@numba.njit(cache=True, nogil=True)
def n_step_returns(
    cells: np.ndarray, rewards: np.ndarray, endings: np.ndarray, n_step: int, gamma: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Follow each of `cells`, integers (k,), for `n_step` steps or to the end of its episode,
    whichever is first.

    A cell is an index into the flattened `rewards`, float, and `endings`, uint8 (codes above). Both
    are (rings, length, rows) and cyclic in their second axis. Returns (the discounted sums of
    rewards float64 (k,), the numbers of steps int64 (k,), the last cells int64 (k,))."""
    length, rows = rewards.shape[1:]
    paid = rewards.reshape(-1)
    ended = endings.reshape(-1)
    returns = np.zeros(len(cells))
    steps = np.zeros(len(cells), np.int64)
    last = np.empty(len(cells), np.int64)
    for k in range(len(cells)):
        cell = cells[k]
        discount = 1.0
        for _ in range(n_step):
            last[k] = cell
            returns[k] += discount * paid[cell]
            steps[k] += 1
            discount *= gamma
            if ended[cell] != GOES_ON:
                break
            cell = next_cell(cell, length, rows)
    return returns, steps, last


@numba.njit(cache=True, nogil=True)
def next_cell(cell, length, rows):  # type: ignore[no-untyped-def]
    """Return the cell, or cells, of the same row one step after `cell`."""
    ring = cell // (length * rows)
    within = cell % (length * rows)
    return ring * length * rows + (within + rows) % (length * rows)
