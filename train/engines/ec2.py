"""Writes the file by which `ray up` starts machines on EC2 and makes them a Ray cluster.

Ray runs in containers of one image.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from envs.common.errors import ConfigError
from train.engines import names
from train.engines.plan import EXPERIMENT_FILE, Plan
from train.runs.stored.object_store import StoredFolder
from train.settings.instances import is_size, vcpus
from train.settings.scale import Instances, group_resources

_FOLDER = "/home/snake/experiment"
_RUNS = "/home/snake/runs"
"""Two folders, because Docker makes the first one, as root, for the file that is mounted."""
_HEAD = "head"
_DISK_GB = 150
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_AMI = re.compile(r"ami-[0-9a-f]{8,17}")


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place on EC2 where a plan runs. Raises `ConfigError` for names that AWS would refuse."""

    image: str
    """The image with procsnake and its extras train and cluster."""
    region: str
    """The region of AWS."""
    runs: str = ""
    """The address in S3 where the run is kept. With an empty one, it is on the head's disk, and
    lost with the head.
    """
    ami: str = ""
    """The machine image, which must have Docker. With an empty one, Ray takes its default, which
    not all regions have.
    """

    def __post_init__(self) -> None:
        names.image(self.image)
        if not _REGION.fullmatch(self.region):
            raise ConfigError(
                f"--region {self.region!r} is not a region of AWS; e.g. --region us-west-2"
            )
        if self.runs:
            StoredFolder.at(self.runs)
        if self.ami and not _AMI.fullmatch(self.ami):
            raise ConfigError(
                f"--ami {self.ami!r} is not an AWS machine image; e.g. --ami ami-0a2b85e15b7c0ac34"
            )


def cluster(plan: Plan, place: Place, experiment: Path) -> str:
    """Return the YAML for `ray up`. `experiment` is the file here with the experiment. Raises
    `ConfigError`.
    """
    names.label("--name", plan.name)
    for _, instances in plan.groups:
        if is_size(instances.instance):
            raise ConfigError(
                f"{instances.instance!r} is a size, but EC2's machines are types; e.g. --instances"
                " '2*ml.c5.4xlarge'"
            )
    config = {
        "cluster_name": plan.name,
        "max_workers": plan.num_machines - 1,
        "provider": {"type": "aws", "region": place.region, "cache_stopped_nodes": False},
        "auth": {"ssh_user": "ubuntu"},
        "docker": {
            "image": place.image,
            "container_name": "procsnake",
            # The image's own entry point is SageMaker's.
            "run_options": ["--init", "--entrypoint=''", "--ulimit nofile=65536:65536"],
        },
        "head_node_type": _HEAD,
        "available_node_types": _node_types(plan, place),
        "file_mounts": {f"{_FOLDER}/{EXPERIMENT_FILE}": str(experiment.absolute())},
        # A machine that shuts down is terminated, and then costs nothing any more.
        "initialization_commands": [f"sudo shutdown -h +{max(1, round(60 * plan.max_hours))}"],
        "head_start_ray_commands": [
            "ray stop",
            (
                "ulimit -n 65536; ray start --head --port=6379"
                " --autoscaling-config=~/ray_bootstrap_config.yaml --dashboard-host=127.0.0.1"
                " --disable-usage-stats"
            ),
        ],
        "worker_start_ray_commands": [
            "ray stop",
            "ulimit -n 65536; ray start --address=$RAY_HEAD_IP:6379 --disable-usage-stats",
        ],
    }
    return yaml.safe_dump(config, sort_keys=False)


def commands(plan: Plan, file: Path, runs: str = "") -> list[str]:
    """Return the commands that start the machines, train, download the runs and remove the
    machines, in this order.

    `runs` is the runs' address, if that isn't the head's disk. If the head is lost, the first
    two commands continue the run there."""
    words = str(file)
    train_command = shlex.join(plan.train_command(_FOLDER, runs or _RUNS))
    train = f"python -m train.engines.wait {plan.num_machines} && {train_command}"
    home = ["ray", "rsync-down", words, f"{_RUNS}/", "runs/"]
    if runs:
        home = ["aws", "s3", "cp", "--recursive", f"{runs.rstrip('/')}/{plan.name}/", "runs/"]
    return [
        shlex.join(["ray", "up", "--yes", words]),
        shlex.join(["ray", "exec", words, train]),
        shlex.join(home),
        shlex.join(["ray", "down", "--yes", words]),
    ]


def _node_types(plan: Plan, place: Place) -> dict[str, Any]:
    (group, learning), *others = plan.groups
    # One machine of the first group is the head.
    types = {_HEAD: _node_type(group, learning, place, 0)}
    if learning.count > 1:
        types[group] = _node_type(group, learning, place, learning.count - 1)
    for name, instances in others:
        types[name] = _node_type(name, instances, place, instances.count)
    return types


def _node_type(group: str, instances: Instances, place: Place, workers: int) -> dict[str, Any]:
    resources = {
        "CPU": vcpus(instances.instance),
        "GPU": instances.gpus // instances.count,
        **group_resources(group),
    }
    node: dict[str, Any] = {
        "InstanceType": instances.instance.removeprefix("ml."),
        "InstanceInitiatedShutdownBehavior": "terminate",
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": _DISK_GB, "Encrypted": True}}
        ],
    }
    if place.ami:
        node["ImageId"] = place.ami
    return {
        "node_config": node,
        "resources": resources,
        "min_workers": workers,
        "max_workers": workers,
    }
