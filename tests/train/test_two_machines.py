"""Env runners on two machines and the learner on a third, as far as Ray can tell: nodes of its own
test cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import ray

from tests.ray_cluster import ray_cluster
from tests.train.experiments import has_played, toy, toy_appo, toy_q, train_until
from train.algorithms import build_algorithm
from train.config import Experiment
from train.settings.scale import LEARNER, ROLLOUT

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")]

EXPERIMENTS = {
    "ppo": lambda: toy("identity"),
    "appo": lambda: toy_appo("identity"),
    "dqn": lambda: toy_q("identity"),
    "apex": lambda: toy_q("identity", algorithm="apex", num_env_runners=2, num_replay_shards=2),
}


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    """The cluster: one machine that learns, two that play."""
    groups = (LEARNER, ROLLOUT, ROLLOUT)
    with ray_cluster(
        *({"num_cpus": 1, "resources": {f"group_{group}": 1}} for group in groups)
    ) as cluster:
        yield cluster


def nodes_of(group: str) -> list[str]:
    return sorted(
        node["NodeID"]
        for node in ray.nodes()
        if node["Alive"] and f"group_{group}" in node["Resources"]
    )


def node_of(*_: object) -> str:
    return ray.get_runtime_context().get_node_id()


def with_two_runners_and_a_learner(algorithm: str) -> Experiment:
    return Experiment.from_dict(
        EXPERIMENTS[algorithm]().to_dict() | {"num_env_runners": 2, "num_learners": 1}
    )


@pytest.mark.parametrize("algorithm", EXPERIMENTS)
def test_env_runners_play_on_two_and_the_learner_learns_on_the_third(machines, algorithm):
    trained = build_algorithm(with_two_runners_and_a_learner(algorithm))
    try:
        runners = trained.env_runner_group.foreach_env_runner(node_of, local_env_runner=False)
        assert sorted(runners) == nodes_of(ROLLOUT)
        assert [
            result.get() for result in trained.learner_group.foreach_learner(node_of)
        ] == nodes_of(LEARNER)
        if algorithm == "apex":
            shards = [result.get() for result in trained.shards.foreach_actor(node_of)]
            assert sorted(shards) == nodes_of(ROLLOUT)
        # The ladder of APEX goes on exploring: see test_apex.
        threshold = 0.6 if algorithm == "apex" else 0.95
        train_until(
            trained,
            lambda result, _: (
                result.get("env_runners", {}).get("episode_return_mean", 0.0) >= threshold
            ),
        )
    finally:
        trained.stop()


def test_a_lost_machine_costs_its_own_work_only(machines):
    """The last test here, because the machine doesn't come back: what the other one plays is
    learned from.
    """
    trained = build_algorithm(with_two_runners_and_a_learner("appo"))
    try:
        train_until(trained, lambda _, learned: "lag" in learned)
        there = nodes_of(ROLLOUT)
        trained_before = trained.learner_group.get_state()["learner"]["weights_seq_no"]
        machines.remove_node(machines.list_all_nodes()[-1], allow_graceful=False)
        train_until(trained, lambda *_: len(nodes_of(ROLLOUT)) < len(there))
        for _ in range(3):
            _, learned = train_until(trained, has_played)
        assert learned.get("restored_learners", 0) == 0
        assert trained.learner_group.get_state()["learner"]["weights_seq_no"] > trained_before
        assert trained.env_runner_group.num_healthy_remote_workers() == 1
    finally:
        trained.stop()
