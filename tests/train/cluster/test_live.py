"""What `sized` makes of AWS's figures fits, by `fit`, on what Ray says that such machines offer."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
import ray

from envs.common.errors import ConfigError, UnknownNameError
from train.cluster.live import fit
from train.cluster.sizes import sized
from train.config import Experiment
from train.settings.instances import gpus, vcpus
from train.settings.scale import scale_overrides


def offered() -> list[str]:
    """The instance types that SageMaker offers and on which we train."""
    found = []
    for instance in (
        botocore.session.get_session()
        .get_service_model("sagemaker")
        .shape_for("TrainingInstanceType")
        .enum
    ):
        try:
            vcpus(instance)
        except (ConfigError, UnknownNameError):
            continue
        found.append(instance)
    return found


def node(instance: str, group: str) -> dict[str, Any]:
    """A machine of that type, as Ray describes it."""
    resources = {"CPU": float(vcpus(instance)), f"group_{group}": 1000.0}
    return {
        "Alive": True,
        "Resources": resources | ({"GPU": float(gpus(instance))} if gpus(instance) else {}),
    }


def scales(instance: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The three scales that this type may have, and the machines on which they find themselves."""
    return [
        (instance, [node(instance, "all")]),
        (f"2*{instance}", [node(instance, "all")] * 2),
        (
            f"{instance}+2*ml.c5.4xlarge",
            [node(instance, "learner"), *[node("ml.c5.4xlarge", "rollout")] * 2],
        ),
        (
            f"ml.g5.12xlarge+2*{instance}",
            [node("ml.g5.12xlarge", "learner"), *[node(instance, "rollout")] * 2],
        ),
    ]


def test_what_follows_from_every_listed_instance_fits_on_it(monkeypatch):
    base = Experiment.load("battlesnake-ppo")
    tried = 0
    for instance in offered():
        for text, nodes in scales(instance):
            monkeypatch.setattr(ray, "nodes", lambda nodes=nodes: nodes)
            experiment = sized(base.override(scale_overrides(text)))
            assert fit(experiment) == experiment, text
            tried += 1
    assert tried > 4 * 100


def test_a_run_without_a_size_leaves_a_cpu_to_each_that_learns(monkeypatch):
    monkeypatch.setattr(ray, "nodes", lambda: [node("ml.g5.12xlarge", "all")])
    base = Experiment.load("battlesnake-ppo", ["num_env_runners=0"])
    assert fit(base).num_env_runners == 48 - 1
    assert (
        fit(base.override(["num_learners=4", "num_gpus_per_learner=1"])).num_env_runners == 48 - 4
    )


@pytest.mark.parametrize(
    ("instances", "overrides", "message"),
    [
        (
            "ml.c5.4xlarge",
            ["scale.workers=17"],
            "17 env runners need a CPU each, but the cluster has 16",
        ),
        ("ml.g5.12xlarge", [], "4 GPUs are to learn, but the cluster has 0"),
    ],
)
def test_what_does_not_fit_is_refused_before_ray_waits_for_it_forever(
    monkeypatch, instances, overrides, message
):
    there = node(instances, "all")
    there["Resources"].pop("GPU", None)
    monkeypatch.setattr(ray, "nodes", lambda: [there])
    with pytest.raises(ConfigError, match=message):
        fit(sized(Experiment.load("battlesnake-ppo", [*scale_overrides(instances), *overrides])))


@pytest.fixture
def asked_for(monkeypatch):
    """What the autoscaler was asked for."""
    asked: list[list[dict[str, float]]] = []
    monkeypatch.setattr(
        "ray.autoscaler.sdk.request_resources", lambda bundles: asked.append(bundles)
    )
    monkeypatch.setattr(
        ray,
        "cluster_resources",
        lambda: {"CPU": 16.0, "group_rollout": 1000.0, "group_learner": 1000.0},
    )
    return asked


def test_a_cluster_that_grows_is_waited_for(monkeypatch, asked_for):
    """One of two playing machines is there at first. The other comes after some looks."""
    looks = []
    said = []

    def nodes():
        looks.append(len(looks))
        playing = 1 if len(looks) < 10 else 2
        return [node("ml.g5.12xlarge", "learner"), *[node("ml.c5.4xlarge", "rollout")] * playing]

    monkeypatch.setattr(ray, "nodes", nodes)
    experiment = sized(
        Experiment.load("battlesnake-ppo", scale_overrides("ml.g5.12xlarge+2*ml.c5.4xlarge"))
    )
    assert fit(experiment, wait_minutes=1, say=said.append, nap_seconds=0) == experiment
    players = [{"CPU": 1.0, "group_rollout": 0.001}] * 32
    learners = [{"GPU": 1.0, "group_learner": 0.001}] * 4
    # What was asked for is taken back, or the machines would stay.
    assert asked_for == [players + learners, []]
    (told,) = said
    assert "the cluster has 64 CPUs and 4 GPUs, which is too little" in told


def test_one_that_stays_too_small_is_refused_in_the_end(monkeypatch, asked_for):
    monkeypatch.setattr(ray, "nodes", lambda: [node("ml.c5.4xlarge", "all")])
    experiment = sized(
        Experiment.load("battlesnake-ppo", [*scale_overrides("ml.c5.4xlarge"), "scale.workers=17"])
    )
    with pytest.raises(
        ConfigError, match=r"17 env runners need a CPU each.*0\.0001 minutes were waited"
    ):
        fit(experiment, wait_minutes=0.0001, say=lambda _: None, nap_seconds=0)
    assert asked_for[-1] == []
    with pytest.raises(ConfigError, match="17 env runners"):
        fit(experiment)
    assert len(asked_for) == 2
