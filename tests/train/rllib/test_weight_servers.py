from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray

from envs.common.errors import ConfigError
from tests.train.rllib.fields_shown import shows
from train.ppo import PPOConfig
from train.rllib import weight_servers
from train.rllib.weight_servers import WeightServer, WeightServers


def weights(version):
    return {"rl_module": ray.put(np.full(3, version)), "weights_seq_no": version}


@pytest.mark.parametrize("machines", [1, 2, 7, 100])
def test_weights_reach_every_machine_once_and_no_one_sends_more_than_two(one_ray, machines):
    servers = [WeightServer() for _ in range(machines)]
    sent: list[tuple[int, int]] = []

    class Handle:
        """As Ray's of an actor, but the server is in this process."""

        def __init__(self, number):
            self.number, self.push = number, SimpleNamespace(remote=self.remote)

        def remote(self, state, onward):
            sent.append((pushing[-1], self.number))
            pushing.append(self.number)
            servers[self.number].push(state, onward)
            pushing.pop()

    pushing = [-1]
    main = WeightServer()
    main.push(weights(5), [Handle(number) for number in range(machines)])
    assert sorted(receiver for _, receiver in sent) == list(range(machines))
    assert max(sum(sender == one for sender, _ in sent) for one in range(-1, machines)) <= 2
    assert {server.get_version() for server in [main, *servers]} == {5}


def test_older_weights_that_come_late_are_ignored(one_ray):
    server = WeightServer()
    for version in (3, 2):
        server.push(weights(version))
    assert server.pull_if_newer(2)["weights_seq_no"] == 3
    assert server.pull_if_newer(3) is None


def test_the_last_machine_that_is_left_goes_on_getting_weights(monkeypatch):
    machines = [28 * "1a", 28 * "2b"]
    pushed = []

    def actor(name):
        return SimpleNamespace(
            name=name, push=SimpleNamespace(remote=lambda _, onward: pushed.append(onward))
        )

    def options(*, name="main", **_):
        return SimpleNamespace(remote=lambda: actor(name))

    def nodes():
        return [
            {"NodeID": machine, "Alive": True, "Resources": {"CPU": 1.0}} for machine in machines
        ]

    own = SimpleNamespace(
        remote=lambda _: SimpleNamespace(options=options), nodes=nodes, put=lambda value: value
    )
    monkeypatch.setattr(weight_servers, "ray", own)
    monkeypatch.setattr(weight_servers, "_SECONDS_BETWEEN_LOOKS", 0.0)
    learned = SimpleNamespace(
        get_state=lambda **_: {"learner": {"rl_module": {}, "weights_seq_no": 1}}
    )
    servers = WeightServers({})
    servers.publish(learned)
    del machines[0]
    servers.publish(learned)
    both, left = ([server.name.rpartition("-")[2] for server in onward] for onward in pushed)
    assert (both, left) == ([28 * "1a", 28 * "2b"], [28 * "2b"])
    WeightServers({}).publish(learned)
    assert pushed[-1] == []


@shows("env_runner_state_server_max_concurrency")
def test_a_server_answers_as_many_at_a_time_as_rllibs_setting_says(monkeypatch):
    asked: list[int] = []

    class Remote:
        def options(self, *, max_concurrency: int, **_: Any) -> Remote:
            asked.append(max_concurrency)
            return self

        def remote(self) -> None: ...

    monkeypatch.setattr(weight_servers.ray, "remote", lambda kind: Remote())
    monkeypatch.setattr(WeightServers, "_look_around", lambda self: None)
    WeightServers({}, 3)
    assert asked == [3]
    with pytest.raises(ConfigError, match="has no effect on ppo"):
        PPOConfig().env_runners(env_runner_state_server_max_concurrency=3).validate()
