"""Asks a running Ray cluster what it offers, and places a run's processes on it. `ray.init` must have been called before."""

from __future__ import annotations

from typing import Any

from envs.common.errors import ConfigError
from train.cluster.scale import LEARNER, ROLLOUT, Local, cpus_for_playing
from train.cluster.sizes import with_workers
from train.config import Experiment

_A_BIT = 0.001


def group_resource(group: str) -> dict[str, float]:
    """Return the resources that place a Ray actor on a machine of `group`; empty if the cluster has no such machines."""
    import ray

    name = f"group_{group}"
    return {name: _A_BIT} if name in ray.cluster_resources() else {}


def place(config: Any) -> None:
    """Place env runners on the machines that play, and learners on those that learn, if the cluster has such groups."""
    config.env_runners(custom_resources_per_env_runner=group_resource(ROLLOUT))
    config.learners(custom_resources_per_learner=group_resource(LEARNER))


def fit(experiment: Experiment) -> Experiment:
    """Return the experiment, fitted to the cluster.

    If it doesn't say how many env runners play, it gets one for each free processor of the cluster. Raises `ConfigError` if
    the cluster is too small, because a process without a place would wait forever.
    """
    cpus, gpus = _offered("CPU"), sum(_offered("GPU").values())
    total = sum(cpus.values())
    if isinstance(experiment.scale, Local) and experiment.num_env_runners == 0:
        free = cpus.get(ROLLOUT, cpus_for_playing(int(total), experiment.num_learners))
        experiment = with_workers(experiment, max(1, int(free)))
    # Who asks for as many as Ray has places for gets them: the main process holds no place, nor does a learner on a GPU.
    held = 0 if experiment.num_gpus_per_learner else experiment.num_learners
    room = int(cpus.get(ROLLOUT, total - held))
    if experiment.num_env_runners > room:
        raise ConfigError(
            f"{experiment.num_env_runners} env runners need a CPU each, but the cluster has {room} for them; "
            f"take fewer: --set num_env_runners={max(1, room)}, or with a scale --set scale.workers={max(1, room)}"
        )
    needed = experiment.num_gpus_per_learner * max(1, experiment.num_learners)
    if needed > gpus:
        raise ConfigError(f"{needed} GPUs are to learn, but the cluster has {gpus:g}; on CPUs: --set num_gpus_per_learner=0")
    return experiment


def _offered(resource: str) -> dict[str, float]:
    """How much of it the machines that are alive have, by group."""
    import ray

    found: dict[str, float] = {}
    for node in ray.nodes():
        if node["Alive"]:
            resources = node["Resources"]
            group = next((name.removeprefix("group_") for name in resources if name.startswith("group_")), "")
            found[group] = found.get(group, 0.0) + resources.get(resource, 0.0)
    return found
