"""Ray, started quietly and stopped again, and RLlib's algorithm on it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from train.config import Experiment

_QUIET = {
    "RLLIB_TEST_NO_TF_IMPORT": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    # Trials stay in the folder that the command was given in, which relative paths in an experiment go by.
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
}


@contextmanager
def running_ray(num_cpus: int) -> Iterator[None]:
    """A Ray of our own for actors that ask for `num_cpus` in all, unless one is running already."""
    os.environ.update(_QUIET)
    import ray

    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)
    if ray.is_initialized():
        yield
        return
    path = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    ray.init(
        # More than there are, if need be: an actor that waits for a core that will never be free waits forever.
        num_cpus=max(os.cpu_count() or 1, num_cpus),
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        runtime_env={"env_vars": {**_QUIET, "PYTHONPATH": path}},
    )
    try:
        yield
    finally:
        ray.shutdown()


def num_processes(experiment: Experiment) -> int:
    """Processes that a run keeps busy."""
    return 1 + experiment.num_env_runners + experiment.num_learners


@contextmanager
def built_algorithm(experiment: Experiment) -> Iterator[Any]:
    """The experiment's RLlib algorithm; needs a Ray that is running."""
    from train.algorithms import algorithm_config

    algorithm = algorithm_config(experiment).build_algo()
    try:
        yield algorithm
    finally:
        algorithm.stop()
