"""Files for `ray up`: against Ray's own schema and defaults, and what Ray's AWS provider then asks
of moto's EC2.
"""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

import procsnake
from envs.common.errors import ConfigError
from procsnake.begin_or_continue import words as words_of_training
from tests.train.engines.plans import plan
from train.engines.ec2 import Place, cluster, commands
from train.engines.plan import Plan

PLACE = Place(image="registry.example.org/procsnake:1", region="us-west-2")
SCALES = ["ml.c5.4xlarge", "3*ml.c5.4xlarge", "2*ml.g5.12xlarge", "ml.g5.2xlarge+2*ml.c5.9xlarge"]


def made(plan: Plan, place: Place = PLACE) -> dict[str, Any]:
    return yaml.safe_load(cluster(plan, place, Path("mine.experiment.yaml")))


@pytest.mark.parametrize("instances", SCALES)
def test_it_is_right_by_rays_schema(instances):
    import jsonschema
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = made(plan(instances))
    validate_config(prepare_config(config))
    with pytest.raises(jsonschema.ValidationError):
        validate_config(prepare_config({**config, "setup_command": "x"}))
    config["available_node_types"]["head"]["min_worker"] = 1
    with pytest.raises(jsonschema.ValidationError):
        validate_config(prepare_config(config))


def test_machines_are_as_many_and_as_large_as_the_scale_says():
    config = made(plan("ml.g5.12xlarge+2*ml.c5.9xlarge"))
    types = config["available_node_types"]
    assert (config["max_workers"], config["head_node_type"], set(types)) == (
        2,
        "head",
        {"head", "rollout"},
    )
    assert types["head"]["resources"] == {"CPU": 48, "GPU": 4, "group_learner": 1000}
    assert types["rollout"]["resources"] == {"CPU": 36, "GPU": 0, "group_rollout": 1000}
    assert (types["rollout"]["min_workers"], types["rollout"]["max_workers"]) == (2, 2)
    assert types["rollout"]["node_config"]["InstanceType"] == "c5.9xlarge"
    several = made(plan("3*ml.c5.4xlarge"))["available_node_types"]
    assert [several[name]["min_workers"] for name in ("head", "all")] == [0, 2]


def test_machines_end_by_themselves_when_their_hours_are_over():
    config = made(plan("3*ml.c5.4xlarge", max_hours=1.5))
    assert config["initialization_commands"] == ["sudo shutdown -h +90"]
    endings = {
        kind["node_config"]["InstanceInitiatedShutdownBehavior"]
        for kind in config["available_node_types"].values()
    }
    assert endings == {"terminate"}


def test_the_commands_are_those_of_ray_and_of_procsnake(monkeypatch):
    from ray.scripts.scripts import cli

    made_plan = plan("3*ml.c5.4xlarge")
    up, train, home, down = (
        shlex.split(command) for command in commands(made_plan, Path("a b.yaml"))
    )
    for words in (up, train, home, down):
        assert words[0] == "ray"
        # Ray's own parser takes it.
        cli.commands[words[1]].make_context(words[1], list(words[2:]))
    waiting, _, training = train[-1].partition(" && ")
    assert waiting == "python -m train.engines.wait 3"
    config, runs = shlex.split(training)[3:]
    assert (
        procsnake.cli.main.build_parser().parse_args(words_of_training(config, runs)).runs == runs
    )
    assert config in made(made_plan)["file_mounts"]
    assert runs.startswith(home[3])
    # Docker makes the folder of a mounted file as root, and the image's user isn't root.
    assert Path(config).parent != Path(runs).parent


def test_a_run_that_is_kept_in_s3_outlives_the_head():
    made_plan = plan("3*ml.c5.4xlarge")
    _, train, home, _ = (
        shlex.split(one) for one in commands(made_plan, Path("a.yaml"), "s3://bucket/runs")
    )
    assert train[-1].endswith("/experiment.yaml s3://bucket/runs/mine")
    assert home[:5] == ["aws", "s3", "cp", "--recursive", "s3://bucket/runs/mine/"]
    with pytest.raises(ConfigError, match="is not an address of runs"):
        Place(image="r/p:1", region="us-west-2", runs="runs")


def test_what_ec2_cannot_have_is_refused():
    with pytest.raises(ConfigError, match=r"'16cpu' is a size.*--instances '2\*ml"):
        made(plan("2*16cpu"))
    with pytest.raises(ConfigError, match="--name my-run"):
        made(plan("ml.c5.4xlarge", name="My Run"))
    with pytest.raises(ConfigError, match="--region us-west-2"):
        Place(image="r/p:1", region="Oregon")
    with pytest.raises(ConfigError, match="--ami ami-"):
        Place(image="r/p:1", region="us-west-2", ami="debian-12")


@pytest.mark.long
def test_what_rays_provider_asks_of_ec2_is_what_the_scale_says(tmp_path, monkeypatch):
    """With moto in AWS's place: roles, keys, networks and machines are asked for by Ray's own
    code.
    """
    from moto import mock_aws

    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    wanted = plan("ml.g5.2xlarge+2*ml.c5.9xlarge")
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        from ray.autoscaler._private.aws.config import bootstrap_aws
        from ray.autoscaler._private.aws.node_provider import AWSNodeProvider
        from ray.autoscaler._private.util import prepare_config
        from ray.autoscaler.tags import TAG_RAY_NODE_KIND

        config = bootstrap_aws(prepare_config(made(wanted)))
        provider = AWSNodeProvider(config["provider"], config["cluster_name"])
        asked: list[tuple[str, int, str]] = []
        provider.ec2_fail_fast.meta.client.meta.events.register(
            "provide-client-params.ec2.RunInstances", partial(_note, asked)
        )
        for kind in config["available_node_types"].values():
            provider.create_node(
                kind["node_config"], {TAG_RAY_NODE_KIND: "any"}, max(1, kind["min_workers"])
            )
    assert asked == [
        (kind.instance.removeprefix("ml."), kind.count, "terminate") for _, kind in wanted.groups
    ]


def _note(asked: list[tuple[str, int, str]], params: dict[str, Any], **_: Any) -> None:
    asked.append(
        (params["InstanceType"], params["MaxCount"], params["InstanceInitiatedShutdownBehavior"])
    )
