"""The algorithms by the name that an experiment gives. RLlib is imported when the first one is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from train.config import Experiment

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

_CONFIGS = {"ppo": "train.ppo:PPOConfig", "dqn": "train.dqn:DQNConfig", "apex": "train.apex:APEXConfig"}


def algorithm_config(experiment: Experiment) -> AlgorithmConfig:
    """RLlib's configuration of a run; `.build_algo()` makes the algorithm."""
    module, _, name = _CONFIGS[experiment.algorithm].partition(":")
    return getattr(import_module(module), name).from_experiment(experiment)
