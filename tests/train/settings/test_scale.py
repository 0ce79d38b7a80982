"""Sizes of instances and what follows from them, against AWS's published figures and sums done by
hand.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import botocore.session
import moto
import pytest

from envs.common.errors import ConfigError, UnknownNameError
from train.cluster.ray_node import start_command
from train.cluster.sizes import explanation, sized, steps_per_update
from train.config import Experiment
from train.settings.instances import gpus, has_own_disk, is_size, memory_gib, vcpus
from train.settings.scale import (
    Heterogeneous,
    Homogeneous,
    Single,
    group_resources,
    scale_overrides,
)

# aws.amazon.com/ec2/instance-types
PUBLISHED = {
    "ml.m5.large": (2, 0),
    "ml.m5.4xlarge": (16, 0),
    "ml.c5.9xlarge": (36, 0),
    "ml.c5.18xlarge": (72, 0),
    "ml.c4.8xlarge": (36, 0),
    "ml.m4.10xlarge": (40, 0),
    "ml.g4dn.xlarge": (4, 1),
    "ml.g4dn.12xlarge": (48, 4),
    "ml.g5.16xlarge": (64, 1),
    "ml.g5.48xlarge": (192, 8),
    "ml.p3.2xlarge": (8, 1),
    "ml.p3.16xlarge": (64, 8),
    "ml.p2.8xlarge": (32, 8),
    "ml.p4d.24xlarge": (96, 8),
    "ml.p5.48xlarge": (192, 8),
    "ml.p5.4xlarge": (16, 1),
    "ml.g7e.8xlarge": (32, 1),
    "ml.g7e.12xlarge": (48, 2),
    "ml.p6-b200.48xlarge": (192, 8),
}


@pytest.mark.parametrize(("instance", "figures"), list(PUBLISHED.items()))
def test_instances_have_the_processors_and_gpus_that_aws_says(instance, figures):
    assert (vcpus(instance), gpus(instance)) == figures


def offered() -> list[str]:
    """The instance types on which SageMaker trains."""
    return list(
        botocore.session.get_session()
        .get_service_model("sagemaker")
        .shape_for("TrainingInstanceType")
        .enum
    )


def test_all_that_ec2_describes_of_the_types_on_offer_is_what_we_work_out():
    """moto has what EC2 answers to DescribeInstanceTypes. P2 and P3 are so old that EC2 has
    forgotten them.
    """
    with gzip.open(
        Path(moto.__file__).parent / "ec2/resources/instance_types.json.gz", "rt"
    ) as file:
        described = json.load(file)
    refused = []
    forgotten = set()
    for instance in offered():
        try:
            ours = vcpus(instance), gpus(instance), has_own_disk(instance)
        except ConfigError:
            refused.append(instance)
            continue
        there = described.get(instance.removeprefix("ml."))
        if there is None:
            forgotten.add(instance.split(".")[1])
            continue
        of_all = sum(kind["Count"] for kind in there.get("GpuInfo", {}).get("Gpus", []))
        assert ours == (
            there["VCpuInfo"]["DefaultVCpus"],
            of_all,
            there["InstanceStorageSupported"],
        ), instance
    assert forgotten <= {"p2", "p3"}
    assert set(PUBLISHED) <= set(offered())
    assert {instance.split(".")[1] for instance in refused} == {
        "trn1",
        "trn1n",
        "trn2",
        "p6e-gb200",
    }


@pytest.mark.parametrize(
    ("size", "figures"),
    [
        ("1cpu", (1, 0, None)),
        ("16cpu-60gib", (16, 0, 60)),
        ("8cpu-2gpu", (8, 2, None)),
        ("96cpu-8gpu-1152gib", (96, 8, 1152)),
    ],
)
def test_a_size_says_itself_what_it_is(size, figures):
    assert (vcpus(size), gpus(size), memory_gib(size)) == figures
    assert is_size(size)


@pytest.mark.parametrize(
    "size",
    [
        "0cpu",
        "cpu",
        "16",
        "8cpu-60gib-1gpu",
        "8cpu-",
        "-8cpu",
        "8 cpu",
        "8cpu\n",
        "8CPU",
        "8cpu-0gib",
    ],
)
def test_what_is_no_size_is_refused(size):
    with pytest.raises(ConfigError, match=r"no size, e\.g\. 16cpu"):
        Single(instance=size)


def load(name: str, instances: str, *overrides: str) -> Experiment:
    return Experiment.load(name, [*scale_overrides(instances), *overrides])


@pytest.mark.parametrize(
    ("instances", "workers", "learners", "gpus_each"),
    [
        ("ml.c5.4xlarge", 16 - 1, 0, 0),
        ("ml.p3.2xlarge", 8 - 1, 0, 1),
        ("3*ml.c5.4xlarge", 3 * 16 - 1, 0, 0),
        ("ml.g5.12xlarge", 48 - 4, 4, 1),
        ("2*ml.g5.12xlarge", 2 * 48 - 8, 8, 1),
        ("5*ml.g5.2xlarge", 5 * 8 - 5, 5, 1),
        ("ml.g5.2xlarge + 2*ml.c5.9xlarge", 2 * 36, 0, 1),
        ("ml.g5.12xlarge+ml.c5.9xlarge", 36, 4, 1),
        ("2*ml.c5.xlarge+ml.c5.9xlarge", 36, 2, 0),
        ("16cpu", 16 - 1, 0, 0),
        ("2*48cpu-4gpu-192gib", 2 * 48 - 8, 8, 1),
        ("8cpu-1gpu+2*36cpu-60gib", 2 * 36, 0, 1),
    ],
)
def test_workers_are_the_processors_but_those_that_learn(instances, workers, learners, gpus_each):
    after = sized(load("battlesnake-apex", instances))
    assert (after.num_env_runners, after.num_learners, after.num_gpus_per_learner) == (
        workers,
        learners,
        gpus_each,
    )


def test_workers_may_be_given():
    assert sized(load("battlesnake-dqn", "ml.c5.4xlarge", "scale.workers=3")).num_env_runners == 3


@pytest.mark.parametrize(
    "instances", ["ml.c5.4xlarge", "3*ml.c5.4xlarge", "ml.g5.2xlarge+4*ml.c5.9xlarge"]
)
@pytest.mark.parametrize(
    "name",
    ["battlesnake-ppo", "battlesnake-appo", "procgen-ppo", "battlesnake-dqn", "battlesnake-apex"],
)
def test_sizing_twice_is_sizing_once_and_survives_the_run_folder(name, instances):
    once = sized(load(name, instances))
    assert sized(once) == once
    assert Experiment.from_dict(once.to_dict()) == once


def batch(experiment: Experiment) -> int:
    return (
        max(1, experiment.num_env_runners)
        * experiment.settings.num_steps
        * experiment.env.options["num_games"]
    )


def test_ppo_keeps_its_batch_as_long_as_it_can_and_the_size_of_a_minibatch_always():
    before = Experiment.load("procgen-ppo")
    assert batch(before) == 16384
    for instances in ("ml.c5.xlarge", "ml.c5.4xlarge", "3*ml.c5.4xlarge"):
        after = sized(load("procgen-ppo", instances))
        assert batch(before) <= batch(after) < 1.02 * batch(before)
    grown = sized(load("procgen-ppo", "ml.g5.2xlarge+4*ml.c5.9xlarge"))
    assert (grown.settings.num_steps, grown.env.options["num_games"]) == (16, 16)
    assert batch(grown) == 144 * 16 * 16
    assert batch(grown) / grown.settings.num_minibatches == pytest.approx(16384 / 8, rel=0.05)


def test_appos_batch_grows_later_because_it_is_not_of_all_env_runners():
    """A hundred machines of 72 processors: PPO's batch is 225 times what it was tuned for, APPO's a
    quarter of that.
    """
    text = "ml.p4d.24xlarge+100*ml.c5.18xlarge"
    ppo, appo = (sized(load(f"battlesnake-{name}", text)) for name in ("ppo", "appo"))
    assert (ppo.num_env_runners, steps_per_update(ppo)) == (7200, 7200 * 16 * 16)
    assert (appo.num_env_runners, steps_per_update(appo)) == (7200, 1800 * 16 * 16)
    assert steps_per_update(appo) / appo.settings.num_minibatches == pytest.approx(
        8192 / 8, rel=0.01
    )
    assert steps_per_update(
        sized(load("battlesnake-appo", "ml.g5.2xlarge+ml.c5.18xlarge"))
    ) == pytest.approx(8192, rel=0.13)


def test_learning_from_replay_keeps_its_batches_and_gets_more_shards():
    before = Experiment.load("battlesnake-apex")
    after = sized(load("battlesnake-apex", "ml.g5.2xlarge+4*ml.c5.9xlarge"))
    assert after.settings.train_batch_size == before.settings.train_batch_size
    assert (before.settings.num_replay_shards, after.settings.num_replay_shards) == (1, 144 // 16)


def test_the_explanation_shows_the_sum():
    told = dict(explanation(load("battlesnake-ppo", "3*ml.c5.4xlarge")))
    assert told["env runners"].startswith("47 = 16 CPUs × 3 instances − 1")
    assert "tuned for: 8192" in told["batch"]
    assert (
        dict(explanation(Experiment.load("battlesnake-ppo")))["scale"]
        == "local: nothing is derived"
    )


def test_short_forms_mean_what_they_say():
    assert isinstance(load("battlesnake-ppo", "ml.c5.xlarge").scale, Single)
    assert load("battlesnake-ppo", "4 x ml.c5.xlarge").scale == Homogeneous(
        instance="ml.c5.xlarge", count=4
    )
    scale = Experiment.load(
        "battlesnake-ppo", scale_overrides("ml.g5.xlarge+2*ml.c5.xlarge", two_jobs=True)
    ).scale
    assert isinstance(scale, Heterogeneous)
    assert (scale.mode, scale.rollout.count) == ("two-jobs", 2)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("scale.kind=singel", "Did you mean 'single'"),
        ("scale={instance: ml.c5.xlarge}", "one of heterogeneous, homogeneous, local, single"),
        ("scale={kind: single, instance: ml.c55.xlarge}", "Did you mean"),
        ("scale={kind: single, instance: ml.trn1.2xlarge}", "Trainium"),
        ("scale={kind: single, instance: big}", "not a SageMaker instance type"),
        ("scale={kind: single, instance: ml.c5.0xlarge}", "not a SageMaker instance type"),
        ("scale={kind: homogeneous, instance: ml.c5.xlarge, count: 0}", "scale.count is 0"),
        ("scale={kind: single, instance: ml.c5.xlarge, count: 2}", "unknown key 'scale.count'"),
        (
            "scale={kind: heterogeneous, learner: {instance: ml.g5.xlarge}}",
            "scale.rollout is missing",
        ),
    ],
)
def test_mistakes_in_a_scale_are_named(override, message):
    with pytest.raises(
        (ConfigError, UnknownNameError), match="(?s).*" + message.replace(".", r"\.")
    ):
        Experiment.load("battlesnake-ppo", [override])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c5.xlarge",
        "0*ml.c5.xlarge",
        "ml.c5.xlarge+ml.c5.xlarge+ml.c5.xlarge",
        "two ml.c5.xlarge",
        "9" * 5000 + "*ml.c5.xlarge",
    ],
)
def test_other_short_forms_are_refused(text):
    with pytest.raises(ConfigError):
        scale_overrides(text)


@pytest.mark.parametrize(("group", "offered"), [("learner", {"group_learner": 1000}), ("all", {})])
def test_machines_that_learn_and_play_are_no_group(group, offered):
    assert group_resources(group) == offered
    assert f"--resources={json.dumps(offered)}" in start_command(
        address="10.0.0.2", group=group, head=None
    )
