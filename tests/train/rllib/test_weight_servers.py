from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import ray

from train.rllib.weight_servers import WeightServer


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

    pushing, main = [-1], WeightServer()
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
