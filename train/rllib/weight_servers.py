"""The newest weights, where env runners can ask for them without waiting for the learner.

Every machine has a server of its own, which knows the newest weights' number and Ray's reference to them. The weights lie in
Ray's object store, which brings them to each machine once, for all its env runners, and from whichever machine has them.
"""

from __future__ import annotations

import uuid
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

_CONCURRENT_REQUESTS = 16


@dataclass(frozen=True)
class WeightSource:
    """How an env runner finds its server: `run` is part of the servers' names, `main` serves machines that have none."""

    run: str
    main: ActorHandle

    def nearest(self) -> ActorHandle:
        """Return the server of this machine, or the main one."""
        with suppress(ValueError):
            return ray.get_actor(_name(self.run, ray.get_runtime_context().get_node_id()))
        return self.main


class WeightServers:
    """A server for every machine of the cluster, and a main one, which `resources` place.

    `publish` costs a message to each server, however many env runners there are.
    """

    def __init__(self, resources: dict[str, float]) -> None:
        server: Any = ray.remote(EnvRunnerStateServer)
        common = {"num_cpus": 0, "max_restarts": -1, "max_concurrency": _CONCURRENT_REQUESTS}
        self.version = -1
        """The number of the weights that were published last."""
        main = server.options(**common, resources=resources).remote()
        self.source = WeightSource(uuid.uuid4().hex, main)
        self._servers: list[ActorHandle] = [main]
        machines = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        for machine in machines if len(machines) > 1 else []:
            here = NodeAffinitySchedulingStrategy(machine, soft=False)
            named = {"name": _name(self.source.run, machine), "scheduling_strategy": here}
            self._servers.append(server.options(**common, **named).remote())

    def publish(self, learner_group: LearnerGroup) -> None:
        """Let env runners have the learner's weights from their next fragment on."""
        part = f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}"
        state = learner_group.get_state(components=[part], inference_only=True)[COMPONENT_LEARNER]
        self.version = state[WEIGHTS_SEQ_NO]
        weights = {COMPONENT_RL_MODULE: ray.put(state[COMPONENT_RL_MODULE]), WEIGHTS_SEQ_NO: self.version}
        for server in self._servers:
            # One that is gone, with its machine, serves nobody.
            with suppress(RayError):
                server.push.remote(weights)

    def stop(self) -> None:
        """End all servers."""
        for server in self._servers:
            ray.kill(server)


def newer_weights(server: ActorHandle, version: int) -> dict[str, Any] | None:
    """Return the state with which an env runner goes on, if the server has weights newer than `version`.

    None also while the server is being restarted: the next fragment asks again.
    """
    answer: Any = server.pull_if_newer.remote(version)
    with suppress(RayError):
        return ray.get(answer)
    return None


def _name(run: str, machine: str) -> str:
    return f"weights-{run}-{machine}"
