"""The algorithms by the name that an experiment gives. What they need is imported when the first one is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from train.config import Experiment

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

_PLAIN = {"mxnet_dqn": "train.mxnet_dqn:MXNetDQN", "imitation": "train.imitation:Imitation"}
_CONFIGS = {"ppo": "train.ppo:PPOConfig", "dqn": "train.dqn:DQNConfig", "apex": "train.apex:APEXConfig"}


def algorithm_config(experiment: Experiment) -> AlgorithmConfig:
    """RLlib's configuration of a run; `.build_algo()` makes the algorithm."""
    module, _, name = _CONFIGS[experiment.algorithm].partition(":")
    return getattr(import_module(module), name).from_experiment(experiment)


def build_algorithm(experiment: Experiment) -> Any:
    """What a session drives: `train`, `policy_weights`, `save_to_path`, `restore_from_path`, `stop`, `fraction_done`.

    Those of RLlib need a Ray that is running.
    """
    if not experiment.uses_ray:
        module, _, name = _PLAIN[experiment.algorithm].partition(":")
        return getattr(import_module(module), name)(experiment)
    from train.cluster.live import place

    config = algorithm_config(experiment)
    place(config)
    return config.build_algo()
