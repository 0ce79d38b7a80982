"""Makes the algorithm of an experiment. What an algorithm needs is imported when it is first
made.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from train.config import Experiment


def trainer_class(experiment: Experiment) -> Any:
    """Return the class that trains an experiment: an RLlib configuration, or without Ray the
    algorithm itself.
    """
    module, _, name = experiment.settings.trainer.partition(":")
    return getattr(import_module(module), name)


def build_algorithm(experiment: Experiment) -> Any:
    """Make the algorithm of an experiment, for a session to drive. The caller must stop it.

    It has `train`, `save_to_path`, `restore_from_path`, `stop` and `fraction_done`; if it trains a
    policy, `policy_weights`; if it trains none, `work_in` and `export`. The algorithms of RLlib
    need a running Ray."""
    trainer = trainer_class(experiment)
    if not experiment.uses_ray:
        return trainer(experiment)
    from train.cluster.live import place

    config = trainer.from_experiment(experiment)
    place(config)
    return config.build_algo()
