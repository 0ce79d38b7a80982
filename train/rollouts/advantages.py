"""Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438) for rows that don't act
on every step.
"""

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
    """Return the advantages of n agent steps in order of time, float32 (n,).

    * `rows`, integers (n,), says whose step it is. A row's next step is its next entry, however
      many entries lie between.
    * `rewards` and `values`, float (n,), are the reward of the step and the value estimated before
      it.
    * `ended`, bool (n,), says that the row's episode ended with the step.
    * `final_values`, float (n,), are used where an episode ended: 0 if it was terminated, the value
      of the final observation if it was truncated.
    * `last_values`, float (R,), are the values of rows whose episode continues after their last
    entry."""
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
