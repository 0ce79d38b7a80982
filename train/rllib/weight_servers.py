"""Serves the newest weights to env runners, so that they needn't wait for the learner.

Every machine has a server, which knows the newest weights' number and Ray's reference to them. The
weights are in Ray's object store, which brings them to each machine once, for all its env runners.
If all machines asked at once, all would get them from the one where they were made. So servers pass
them on as a tree: each has them before the next two ask."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE
from ray.rllib.core.learner.learner_group import LearnerGroup
from ray.rllib.env.env_runner_state_server import EnvRunnerStateServer
from ray.rllib.utils.metrics import WEIGHTS_SEQ_NO
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

_OPTIONS = {"num_cpus": 0, "max_restarts": -1}
_SECONDS_BETWEEN_LOOKS = 10.0


@dataclass(frozen=True)
class WeightSource:
    """How an env runner finds its server: `run` is part of the servers' names, `main` serves
    machines that have none.
    """

    run: str
    main: ActorHandle

    def nearest(self) -> ActorHandle:
        """Return the server of this machine, or the main one."""
        with suppress(ValueError):
            return ray.get_actor(_name(self.run, ray.get_runtime_context().get_node_id()))
        return self.main


class WeightServer(EnvRunnerStateServer):
    """RLlib's server, which also fetches the weights to its machine and passes them on."""

    def push(self, state: dict[str, Any], onward: Sequence[ActorHandle] = ()) -> None:
        """Take weights, unless it has newer ones, and pass them on to two of `onward`, each with
        half of the rest.
        """
        with suppress(RayError):
            ray.get(state[COMPONENT_RL_MODULE])
        if self.get_version() <= state[WEIGHTS_SEQ_NO]:
            super().push(state)
        for part in (onward[0::2], onward[1::2]):
            if part:
                part[0].push.remote(state, part[1:])


class WeightServers:
    """A server for every machine of the cluster, and a main one, which `resources` place. Each
    answers `max_concurrency` env runners at a time.

    `publish` costs this process one message, however many machines and env runners there are.
    Machines that come later get a server, too; those that are lost no longer get weights, after
    some seconds."""

    def __init__(self, resources: dict[str, float], max_concurrency: int = 16) -> None:
        self._options = {**_OPTIONS, "max_concurrency": max_concurrency}
        server: Any = ray.remote(WeightServer)
        self.version = -1
        """The number of the weights that were published last."""
        self.source = WeightSource(
            uuid.uuid4().hex, server.options(**self._options, resources=resources).remote()
        )
        self._servers: dict[str, ActorHandle] = {}
        self._looked_at = -math.inf
        self._look_around()

    def _look_around(self) -> None:
        """Every now and then, start servers on new machines, and forget those of lost machines."""
        if time.monotonic() - self._looked_at < _SECONDS_BETWEEN_LOOKS:
            return
        self._looked_at = time.monotonic()
        there = [
            node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")
        ]
        # The last machine that is left keeps its server, because its env runners go on asking that
        # one.
        self._servers = {
            machine: self._servers[machine] for machine in there if machine in self._servers
        }
        if len(there) > 1:
            for machine in there:
                if machine not in self._servers:
                    self._servers[machine] = self._start(machine)

    def _start(self, machine: str) -> ActorHandle:
        here = NodeAffinitySchedulingStrategy(machine, soft=False)
        server: Any = ray.remote(WeightServer)
        return server.options(
            **self._options, name=_name(self.source.run, machine), scheduling_strategy=here
        ).remote()

    def publish(self, learner_group: LearnerGroup) -> None:
        """Let env runners have the learner's weights from their next fragment on."""
        part = f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}"
        state = learner_group.get_state(components=[part], inference_only=True)[COMPONENT_LEARNER]
        self.version = state[WEIGHTS_SEQ_NO]
        weights = {
            COMPONENT_RL_MODULE: ray.put(state[COMPONENT_RL_MODULE]),
            WEIGHTS_SEQ_NO: self.version,
        }
        self._look_around()
        main: Any = self.source.main
        main.push.remote(weights, list(self._servers.values()))

    def stop(self) -> None:
        """End all servers."""
        for server in (self.source.main, *self._servers.values()):
            ray.kill(server)


def newer_weights(server: ActorHandle, version: int) -> dict[str, Any] | None:
    """Return the state with which an env runner continues, if the server has newer weights than
    `version`.

    Raises Ray's `RayError` if the server is lost or is being restarted.
    """
    answer: Any = server.pull_if_newer.remote(version)
    return ray.get(answer)


def _name(run: str, machine: str) -> str:
    return f"weights-{run}-{machine}"
