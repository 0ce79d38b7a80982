"""Makes algorithms by the name that an experiment gives. What an algorithm needs is imported when it is first made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from train.config import Experiment

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


def algorithm_config(experiment: Experiment) -> AlgorithmConfig:
    """Return RLlib's configuration of a run. Its `build_algo()` makes the algorithm."""
    return _trainer(experiment).from_experiment(experiment)


def build_algorithm(experiment: Experiment) -> Any:
    """Make the algorithm of an experiment, for a session to drive.

    It has `train`, `policy_weights`, `save_to_path`, `restore_from_path`, `stop` and `fraction_done`. The algorithms of RLlib
    need a running Ray.
    """
    if not experiment.uses_ray:
        return _trainer(experiment)(experiment)
    from train.cluster.live import place

    config = algorithm_config(experiment)
    place(config)
    return config.build_algo()


def _trainer(experiment: Experiment) -> Any:
    module, _, name = experiment.settings.trainer.partition(":")
    return getattr(import_module(module), name)
