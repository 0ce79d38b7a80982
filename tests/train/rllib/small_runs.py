"""Small configurations of our algorithms, as a user of RLlib writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from train.ppo import PPOConfig
from train.rllib.batched_config import BatchedConfig

WORLD = {"imports": ["tests.train.small_worlds"]}


def small(kind: type[BatchedConfig] = PPOConfig) -> Any:
    config = kind().environment("identity", env_config=WORLD).debugging(seed=1)
    return config.env_runners(num_envs_per_env_runner=8, rollout_fragment_length=4)


def learning(kind: type[BatchedConfig] = PPOConfig, **values: Any) -> Any:
    """A run that is the same in each test, without a limit to its gradients, of which RLlib would
    log the norm.
    """
    config = small(kind).training(
        num_threads=1, bf16=False, lr=0.01, grad_clip=values.pop("grad_clip", None)
    )
    for field, value in values.items():
        setattr(config, field, value)
    return config


def seen(config: Any, probe: Callable[[Any], Any]) -> Any:
    """What `probe` sees of the algorithm that is built."""
    algorithm = config.build_algo()
    try:
        return probe(algorithm)
    finally:
        algorithm.stop()
