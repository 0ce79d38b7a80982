"""Env runners on one machine and the learner on another, as far as Ray can tell: two nodes of its own test cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import ray

from tests.ray_cluster import ray_cluster
from tests.train.experiments import toy, toy_q
from train.algorithms import build_algorithm
from train.cluster.scale import LEARNER, ROLLOUT
from train.config import Experiment

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")]

EXPERIMENTS = {
    "ppo": lambda: toy("identity"),
    "dqn": lambda: toy_q("identity"),
    "apex": lambda: toy_q("identity", algorithm="apex", num_env_runners=2),
}


@pytest.fixture(scope="module")
def two_machines() -> Iterator[dict[str, str]]:
    """Node id by group."""
    cpus = {LEARNER: 1, ROLLOUT: 2}
    with ray_cluster(*({"num_cpus": count, "resources": {f"group_{group}": 1}} for group, count in cpus.items())):
        yield {group: node["NodeID"] for node in ray.nodes() for group in cpus if f"group_{group}" in node["Resources"]}


def node_of(_: object) -> str:
    return ray.get_runtime_context().get_node_id()


@pytest.mark.parametrize("algorithm", EXPERIMENTS)
def test_env_runners_play_on_one_and_the_learner_learns_on_the_other(two_machines, algorithm):
    data = EXPERIMENTS[algorithm]().to_dict() | {"num_env_runners": 2, "num_learners": 1}
    trained = build_algorithm(Experiment.from_dict(data))
    try:
        assert two_machines[LEARNER] != two_machines[ROLLOUT]
        runners = trained.env_runner_group.foreach_env_runner(node_of, local_env_runner=False)
        assert runners == [two_machines[ROLLOUT]] * 2
        assert [result.get() for result in trained.learner_group.foreach_learner(node_of)] == [two_machines[LEARNER]]
        # The ladder of APEX goes on exploring: see test_apex.
        threshold, best = (0.6 if algorithm == "apex" else 0.95), 0.0
        for _ in range(200):
            result = trained.train()
            best = max(best, result.get("env_runners", {}).get("episode_return_mean", 0.0))
            if best >= threshold:
                break
        assert best >= threshold
    finally:
        trained.stop()
