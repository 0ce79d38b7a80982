"""Asks a running Ray cluster what it offers, and places a run's processes on it.

`ray.init` must have been called before.
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
    """Return the options of Ray actors that hold experience.

    They are spread over the machines that play, if several do. Otherwise they are better on the
    machine that learns."""
    import ray

    playing = group_resource(ROLLOUT)
    machines = [
        node for node in ray.nodes() if node["Alive"] and playing.keys() <= node["Resources"].keys()
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

    Without a number of env runners, it gets one for each free processor of the cluster. If the
    cluster is too small, its autoscaler is asked for more, and `say` reports what has arrived.
    Raises `ConfigError` if that takes longer than `wait_minutes`, because a process without a place
    would wait forever."""
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
    last_offer = ""
    while True:
        try:
            return _fitted(experiment)
        except ConfigError as error:
            if time.monotonic() > until:
                raise
            cpus = sum(_offered("CPU").values())
            gpus = sum(_offered("GPU").values())
            offer = f"{cpus:g} CPUs and {gpus:g} GPUs"
            if offer != last_offer:
                say(f"the cluster has {offer}, which is too little; waiting for more ({error})")
            last_offer = offer
        time.sleep(nap_seconds)


def _places(experiment: Experiment) -> list[dict[str, float]]:
    """The resources that each process of the run needs, for an autoscaler.

    The main process needs nothing of Ray."""
    player = {"CPU": 1.0, **group_resource(ROLLOUT)}
    learner = {"CPU": 1.0, **group_resource(LEARNER)}
    if gpus := experiment.num_gpus_per_learner:
        learner = {"GPU": float(gpus), **group_resource(LEARNER)}
    # Without learners apart, the main process learns, on the GPU of its own machine.
    num_learners = experiment.num_learners or min(1, experiment.num_gpus_per_learner)
    return [player] * experiment.num_env_runners + [learner] * num_learners


def _fitted(experiment: Experiment) -> Experiment:
    cpus = _offered("CPU")
    gpus = sum(_offered("GPU").values())
    total = sum(cpus.values())
    if isinstance(experiment.scale, Local) and experiment.num_env_runners == 0:
        free = cpus.get(ROLLOUT, cpus_for_playing(int(total), experiment.num_learners))
        experiment = with_workers(experiment, max(1, int(free)))
    # A learner on a GPU takes no CPU of Ray's, nor does the main process.
    cpus_that_learn = 0 if experiment.num_gpus_per_learner else experiment.num_learners
    room = int(cpus.get(ROLLOUT, total - cpus_that_learn))
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
    """The amount of a resource on the machines that are alive, by their group."""
    import ray

    amounts: dict[str, float] = {}
    for node in ray.nodes():
        if node["Alive"]:
            resources = node["Resources"]
            markers = [name for name in resources if name.startswith(GROUP)]
            group = markers[0].removeprefix(GROUP) if markers else ""
            amounts[group] = amounts.get(group, 0.0) + resources.get(resource, 0.0)
    return amounts
