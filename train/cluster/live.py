"""Asks a running Ray cluster what it offers, and places a run's processes on it. `ray.init` must
have been called before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from envs.common.errors import ConfigError
from train.cluster.sizes import with_workers
from train.config import Experiment
from train.settings.scale import GROUP, LEARNER, ROLLOUT, Local, cpus_for_playing

_A_BIT = 0.001


def group_resource(group: str) -> dict[str, float]:
    """Return the resources that place a Ray actor on a machine of `group`; empty if the cluster has
    no such machines.
    """
    import ray

    name = f"{GROUP}{group}"
    if name in ray.cluster_resources():
        return {name: _A_BIT}
    return {}


def place(config: Any) -> None:
    """Place env runners on the machines that play, and learners on those that learn, if the cluster
    has such groups.
    """
    config.env_runners(custom_resources_per_env_runner=group_resource(ROLLOUT))
    config.learners(custom_resources_per_learner=group_resource(LEARNER))


def spread() -> dict[str, Any]:
    """Return the options of Ray actors that hold experience: they are spread over the machines that
    play, if several do.

    On one machine that plays, or none but it, they are better where it is learned from.
    """
    import ray

    playing = group_resource(ROLLOUT)
    machines = [
        node
        for node in ray.nodes()
        if node["Alive"] and (not playing or set(playing) & set(node["Resources"]))
    ]
    if len(machines) > 1:
        return {"resources": playing, "scheduling_strategy": "SPREAD"}
    return {"resources": group_resource(LEARNER)}


def fit(
    experiment: Experiment,
    *,
    wait_minutes: float = 0.0,
    say: Callable[[str], None] = print,
    nap_seconds: float = 5.0,
) -> Experiment:
    """Return the experiment, fitted to the cluster.

    If it doesn't say how many env runners play, it gets one for each free processor of the cluster.
    If the cluster is too small, its autoscaler is asked for what is missing, and `say` tells what
    has come until it is enough. Raises `ConfigError` if that takes longer than `wait_minutes`,
    because a process without a place would wait forever."""
    try:
        return _fitted(experiment)
    except ConfigError:
        if not wait_minutes:
            raise
    from ray.autoscaler.sdk import request_resources

    request_resources(bundles=_places(experiment))
    try:
        return _waited(experiment, time.monotonic() + 60 * wait_minutes, say, nap_seconds)
    except ConfigError as error:
        raise ConfigError(
            f"{error}. {wait_minutes:g} minutes were waited for more machines (--wait)"
        ) from error
    finally:
        # A request stands until the next one, and would keep the machines after the run.
        request_resources(bundles=[])


def _waited(
    experiment: Experiment, until: float, say: Callable[[str], None], nap_seconds: float
) -> Experiment:
    told = ""
    while True:
        try:
            return _fitted(experiment)
        except ConfigError as error:
            if time.monotonic() > until:
                raise
            there = (
                f"{sum(_offered('CPU').values()):g} CPUs and {sum(_offered('GPU').values()):g} GPUs"
            )
            if there != told:
                say(f"the cluster has {there}, which is too little; waiting for more ({error})")
            told = there
        time.sleep(nap_seconds)


def _places(experiment: Experiment) -> list[dict[str, float]]:
    """What each process of the run needs, as an autoscaler wants to know it. The main process needs
    nothing of Ray.
    """
    player = {"CPU": 1.0, **group_resource(ROLLOUT)}
    learner = {
        "GPU" if experiment.num_gpus_per_learner else "CPU": float(
            max(1, experiment.num_gpus_per_learner)
        )
    }
    # Without learners apart, the main process learns, on the GPU of its own machine.
    learners = experiment.num_learners or min(1, experiment.num_gpus_per_learner)
    return [player] * experiment.num_env_runners + [
        {**learner, **group_resource(LEARNER)}
    ] * learners


def _fitted(experiment: Experiment) -> Experiment:
    cpus = _offered("CPU")
    gpus = sum(_offered("GPU").values())
    total = sum(cpus.values())
    if isinstance(experiment.scale, Local) and experiment.num_env_runners == 0:
        free = cpus.get(ROLLOUT, cpus_for_playing(int(total), experiment.num_learners))
        experiment = with_workers(experiment, max(1, int(free)))
    # Who asks for as many as Ray has places for gets them: the main process holds no place, nor
    # does a learner on a GPU.
    held = 0 if experiment.num_gpus_per_learner else experiment.num_learners
    room = int(cpus.get(ROLLOUT, total - held))
    if experiment.num_env_runners > room:
        raise ConfigError(
            f"{experiment.num_env_runners} env runners need a CPU each, but the cluster has {room}"
            f" for them; take fewer: --set num_env_runners={max(1, room)}, or with a scale --set"
            f" scale.workers={max(1, room)}"
        )
    needed = experiment.num_gpus_per_learner * max(1, experiment.num_learners)
    if needed > gpus:
        raise ConfigError(
            f"{needed} GPUs are to learn, but the cluster has {gpus:g}; on CPUs: --set"
            " num_gpus_per_learner=0"
        )
    return experiment


def _offered(resource: str) -> dict[str, float]:
    """How much of it the machines that are alive have, by group."""
    import ray

    found: dict[str, float] = {}
    for node in ray.nodes():
        if node["Alive"]:
            resources = node["Resources"]
            group = next(
                (name.removeprefix(GROUP) for name in resources if name.startswith(GROUP)), ""
            )
            found[group] = found.get(group, 0.0) + resources.get(resource, 0.0)
    return found
