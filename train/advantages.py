"""Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438) over rows that come and go."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def gae(
    rows: np.ndarray,
    rewards: np.ndarray,
    values: np.ndarray,
    ended: np.ndarray,
    final_values: np.ndarray,
    last_values: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:
    """Advantages float32 (n,) of n agent steps in order of time.

    `rows` integers (n,): whose step it is; a row's next step is its next entry, however many entries lie between.
    `rewards`, `values` float (n,): pay for the step, estimate before it. `ended` bool (n,): the row's episode ended with the
    step. `final_values` float (n,), where ended: 0 if terminated, the value of the final observation if truncated.
    `last_values` float (R,): estimates for the rows whose episode goes on after their last entry.
    """
    advantages = np.empty(len(rows), np.float32)
    next_value = last_values.astype(np.float64)
    next_advantage = np.zeros(len(last_values))
    for i in range(len(rows) - 1, -1, -1):
        row = rows[i]
        if ended[i]:
            next_value[row] = final_values[i]
            next_advantage[row] = 0.0
        delta = rewards[i] + gamma * next_value[row] - values[i]
        next_advantage[row] = delta + gamma * gae_lambda * next_advantage[row]
        next_value[row] = values[i]
        advantages[i] = next_advantage[row]
    return advantages
