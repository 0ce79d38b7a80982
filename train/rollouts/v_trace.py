"""V-trace (IMPALA: Espeholt et al. 2018, arXiv 1802.01561, section 4.1) for rows that don't act on
every step.
"""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def v_trace(
    rows: np.ndarray,
    rewards: np.ndarray,
    values: np.ndarray,
    ended: np.ndarray,
    final_values: np.ndarray,
    last_values: np.ndarray,
    ratios: np.ndarray,
    gamma: float,
    trace_lambda: float,
    rho_clip: float,
    c_clip: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (the targets of the value function, the advantages) of n agent steps in order of time,
    float32 (n,) each.

    `ratios`, float (n,), are π(a|x) / μ(a|x): the action's probability under the learning policy,
    over that under the policy that played. The other arguments are those of
    `train.rollouts.advantages.gae`, with the learner's `values`. With ρ = min(rho_clip, ratio) and
    c = λ · min(c_clip, ratio), and with δ = ρ · (r + γ V(x') - V(x)),

    * the target is v = V(x) + δ + γ c (v' - V(x')) (remark 1 of the paper; λ is that of its remark
      2),
    * the advantage is ρ · (r + γ (λ v' + (1 - λ) V(x')) - V(x)).

    With λ = 1 the advantage is the paper's. With ratios of 1, it is generalised advantage
    estimation's for any λ."""
    targets = np.empty(len(rows), np.float32)
    advantages = np.empty(len(rows), np.float32)
    next_value = last_values.astype(np.float64)
    # Of each row: how far the target of its next step is above that step's value.
    next_excess = np.zeros(len(last_values))
    for i in range(len(rows) - 1, -1, -1):
        row = rows[i]
        if ended[i]:
            next_value[row] = final_values[i]
            next_excess[row] = 0.0
        rho = min(rho_clip, ratios[i])
        c = trace_lambda * min(c_clip, ratios[i])
        error = rewards[i] + gamma * next_value[row] - values[i]
        advantages[i] = rho * (error + gamma * trace_lambda * next_excess[row])
        next_excess[row] = rho * error + gamma * c * next_excess[row]
        next_value[row] = values[i]
        targets[i] = values[i] + next_excess[row]
    return targets, advantages
