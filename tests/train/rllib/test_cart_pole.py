"""Both learners against a world whose score everyone knows, through the same batched path."""

from __future__ import annotations

import math
from typing import Any

import pytest

from train.algorithms import build_algorithm
from train.config import Experiment

SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {
        "learning_rate": 1e-3,
        "num_steps": 64,
        "gae_lambda": 0.9,
        "num_epochs": 10,
        "num_minibatches": 8,
        "ent_coef": 0.0,
    },
    "dqn": {
        "learning_rate": [[0, 5e-4], [200_000, 1e-4]],
        "num_steps": 4,
        "train_batch_size": 128,
        "replay_ratio": 8,
        "n_step": 3,
        "learning_starts": 2000,
        "replay_capacity": 50_000,
        "epsilon": [[0, 1.0], [10_000, 0.02], [60_000, 0.0]],
        "target_update_freq": 1,
        "tau": 0.01,
    },
}


@pytest.mark.long
@pytest.mark.parametrize("algorithm", sorted(SETTINGS))
def test_balances_for_475_steps(one_ray, algorithm):
    """Gymnasium's threshold for CartPole-v1, here as the mean of the episodes of the last
    iterations, 100 at least.
    """
    experiment = Experiment.from_dict(
        {
            "name": "cart-pole",
            "algorithm": algorithm,
            "env": {
                "name": "cart-pole",
                "imports": ["tests.train.small_worlds"],
                "options": {"num_games": 8},
            },
            "network": {
                "name": "mlp",
                "options": {"hidden_sizes": [64, 64], "scales": [1.0, 1.0, 1.0, 1.0]},
            },
            algorithm: {"num_threads": 1, "bf16": False, **SETTINGS[algorithm]},
            "budget": {"total_agent_steps": 1},
        }
    )
    trained = build_algorithm(experiment)
    ended: list[tuple[float, int]] = []
    try:
        while trained.agent_steps() < 300_000:
            played = trained.train()["env_runners"]
            count = played["num_episodes"]
            if count > 0:
                ended.append((played["episode_return_mean"] * count, int(count)))
            if mean_of_last(ended) >= 475:
                return
        raise AssertionError(
            f"only {mean_of_last(ended):.0f} steps after {trained.agent_steps():.0f}"
        )
    finally:
        trained.stop()


def mean_of_last(ended: list[tuple[float, int]], least: int = 100) -> float:
    total = 0.0
    count = 0
    for returns, episodes in reversed(ended):
        total = total + returns
        count = count + episodes
        if count >= least:
            return total / count
    return -math.inf
