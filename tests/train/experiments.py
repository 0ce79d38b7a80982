"""Small experiments for the tests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from train.algorithms import build_algorithm
from train.config import Experiment


def toy(
    world: str,
    *,
    algorithm: str = "ppo",
    steps: int = 20_000,
    num_env_runners: int = 0,
    num_learners: int = 0,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> Experiment:
    """An experiment with PPO or APPO on a world of `tests.train.small_worlds`."""
    return Experiment.from_dict(
        {
            "name": world,
            "algorithm": algorithm,
            "env": {
                "name": world,
                "imports": ["tests.train.small_worlds"],
                "options": {"num_games": 64, **(options or {})},
            },
            "network": {"name": "mlp", "options": {"hidden_sizes": [32]}},
            algorithm: {"learning_rate": 1e-2, "num_steps": 16, "num_threads": 1, **settings},
            "budget": {"total_agent_steps": steps},
            "num_env_runners": num_env_runners,
            "num_learners": num_learners,
        }
    )


def toy_appo(world: str, **settings: Any) -> Experiment:
    """The same with APPO."""
    return toy(world, algorithm="appo", **settings)


def best_return(
    experiment: Experiment, iterations: int, *, enough: float = 0.98
) -> tuple[float, dict[str, Any]]:
    """The best mean return of up to `iterations` of the algorithm, which ends early at `enough`,
    and the last result.
    """
    algorithm = build_algorithm(experiment)
    try:
        best = -math.inf
        for _ in range(iterations):
            result = algorithm.train()
            best = max(best, result.get("env_runners", {}).get("episode_return_mean", -math.inf))
            if best >= enough:
                break
        return best, result
    finally:
        algorithm.stop()


def toy_q(
    world: str,
    *,
    algorithm: str = "dqn",
    num_env_runners: int = 0,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> Experiment:
    """The same for DQN and APEX."""
    chosen = {
        "learning_rate": 5e-3,
        "num_steps": 4,
        "num_threads": 1,
        "train_batch_size": 128,
        "learning_starts": 500,
        "replay_capacity": 20_000,
        "replay_ratio": 2,
        "target_update_freq": 20,
        **settings,
    }
    if algorithm == "dqn":
        chosen = {"epsilon": [[0, 1.0], [4000, 0.0]], **chosen}
    return Experiment.from_dict(
        {
            "name": world,
            "algorithm": algorithm,
            "env": {
                "name": world,
                "imports": ["tests.train.small_worlds"],
                "options": {"num_games": 64, **(options or {})},
            },
            "network": {"name": "mlp", "options": {"hidden_sizes": [32]}},
            algorithm: chosen,
            "budget": {"total_agent_steps": 20_000},
            "num_env_runners": num_env_runners,
        }
    )


def train_until(
    algorithm: Any,
    condition: Callable[[dict[str, Any], dict[str, Any]], bool],
    *,
    seconds: float = 120.0,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Iterations until `condition` holds of (result, metrics of learning), which are returned;
    fails if it takes too long.
    """
    began = time.monotonic()
    while True:
        result = algorithm.train()
        learned = result.get("learners", {}).get("default_policy", {})
        if condition(result, learned):
            return result, learned
        assert time.monotonic() - began < seconds, "it took too long"


def has_played(result: dict[str, Any], _: dict[str, Any]) -> bool:
    """A condition for `train_until`: the iteration brought experience. One of APEX may bring
    none.
    """
    return bool(result.get("env_runners", {}).get("num_env_steps_sampled", 0) > 0)


def endless(algorithm: str) -> Experiment:
    """One of these on the identity world that saves after every iteration and doesn't end on its
    own.
    """
    runners = int(algorithm == "apex")
    made = (
        toy("identity")
        if algorithm == "ppo"
        else toy_q("identity", algorithm=algorithm, num_env_runners=runners)
    )
    changes = {
        "budget": {"total_agent_steps": 10**9},
        "checkpoints": {"every_minutes": 0.0, "keep": 2},
    }
    return Experiment.from_dict({**made.to_dict(), **changes})
