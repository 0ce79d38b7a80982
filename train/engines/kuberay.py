"""Writes the manifest of a RayJob.

KubeRay then makes a Ray cluster on Kubernetes, trains on it and removes it. Sources: KubeRay's
types `RayJobSpec` and `RayClusterSpec` (ray.io/v1) and its operator's checks of them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import yaml

from envs.common.errors import ConfigError
from train.engines import names
from train.engines.plan import EXPERIMENT_FILE, Plan
from train.runs.stored.object_store import StoredFolder
from train.settings.instances import is_size, memory_gib, vcpus
from train.settings.scale import Instances, group_resources

_EXPERIMENT = "/etc/procsnake"
_RUNS = "/runs"
_GRACE_SECONDS = 100
_RETRIES = 3
_GROUP = 10001
"""The group of our image's user, to whom volumes are given."""
_NVIDIA = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""The taint that nodes with GPUs have on most clusters."""
_KEPT_SECONDS = 3600
"""Seconds for which the operator keeps the cluster after the job has ended, to read its logs."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place on Kubernetes where a plan runs. Raises `ConfigError` for names that Kubernetes
    would refuse.
    """

    image: str
    """The image with procsnake and its extras train and cluster."""
    claim: str = ""
    """The volume claim that gets the run folder."""
    runs: str = ""
    """The address in an object store that gets the run folder in the place of a claim."""
    service_account: str = ""
    """The service account of the pods, whose rights may be those to the address."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels of the nodes with GPUs, or of all if no machine has any."""
    tolerations: Sequence[Mapping[str, str]] = ()
    """Taints that these pods tolerate, as Kubernetes writes them, besides NVIDIA's."""
    namespace: str = ""
    """The namespace. With an empty one, it is that of kubectl's context."""

    def __post_init__(self) -> None:
        names.image(self.image)
        if bool(self.claim) == bool(self.runs):
            raise ConfigError(
                "launch kuberay needs --claim, e.g. --claim runs, or --runs s3://bucket/folder, and"
                " not both"
            )
        if self.claim:
            names.claim(self.claim)
        else:
            StoredFolder.at(self.runs)
        if self.service_account:
            names.claim(self.service_account, "--service-account")
        if self.namespace:
            names.label("--namespace", self.namespace)


def manifest(plan: Plan, place: Place) -> str:
    """Return the manifest as YAML: a ConfigMap with the experiment, and the RayJob. Raises
    `ConfigError`.
    """
    names.label("--name", plan.name, names.LONGEST_RAY_JOB)
    about: dict[str, Any] = {"name": plan.name, "labels": {"app.kubernetes.io/name": "procsnake"}}
    if place.namespace:
        about["namespace"] = place.namespace
    experiment = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": about,
        "data": {EXPERIMENT_FILE: plan.experiment_text},
    }
    job = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": about,
        "spec": _job(plan, place),
    }
    return yaml.dump_all([experiment, job], Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Writes YAML for readers: without anchors, and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _job(plan: Plan, place: Place) -> dict[str, Any]:
    (group, learning), *others = plan.groups
    # One machine of the first group is the head.
    workers = [(group, learning, learning.count - 1)]
    workers += [(name, instances, instances.count) for name, instances in others]
    return {
        "entrypoint": shlex.join(plan.train_command(_EXPERIMENT, place.runs or _RUNS)),
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": _KEPT_SECONDS,
        "activeDeadlineSeconds": round(3600 * plan.max_hours),
        # A second try, on a cluster of its own, goes on with the run of the first.
        "backoffLimit": _RETRIES,
        "rayClusterSpec": {
            "rayVersion": metadata.version("ray"),
            # The operator makes the token, and keeps it in a Secret.
            "authOptions": {"mode": "token"},
            "headGroupSpec": {
                "rayStartParams": {**_start(group, learning), "dashboard-host": "0.0.0.0"},
                "template": _pod(plan, place, learning, leads=True),
            },
            "workerGroupSpecs": [
                {
                    "groupName": name,
                    "replicas": count,
                    "minReplicas": count,
                    "maxReplicas": count,
                    "rayStartParams": _start(name, instances),
                    "template": _pod(plan, place, instances, leads=False),
                }
                for name, instances, count in workers
                if count
            ],
        },
    }


def _start(group: str, instances: Instances) -> dict[str, str]:
    """The options of `ray start`, which KubeRay puts into a shell command unquoted."""
    options = {"num-cpus": str(vcpus(instances.instance)), "num-gpus": str(_gpus(instances))}
    if resources := group_resources(group):
        options["resources"] = shlex.quote(json.dumps(resources))
    return options


def _gpus(instances: Instances) -> int:
    return instances.gpus // instances.count


def _pod(plan: Plan, place: Place, instances: Instances, *, leads: bool) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "ray-head" if leads else "ray-worker",
        "image": place.image,
        "resources": _resources(instances),
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "terminationGracePeriodSeconds": _GRACE_SECONDS + 20,
    }
    if leads:
        # Ray kills a job that it stops after three seconds, in which no iteration ends.
        container["env"] = [{"name": "RAY_JOB_STOP_WAIT_TIME_S", "value": str(_GRACE_SECONDS)}]
        container["volumeMounts"] = [
            {"name": "experiment", "mountPath": _EXPERIMENT, "readOnly": True}
        ]
        spec["volumes"] = [{"name": "experiment", "configMap": {"name": plan.name}}]
        if place.claim:
            container["volumeMounts"].append({"name": "runs", "mountPath": _RUNS})
            spec["volumes"].append(
                {"name": "runs", "persistentVolumeClaim": {"claimName": place.claim}}
            )
            spec["securityContext"] = {"fsGroup": _GROUP}
    if place.service_account:
        spec["serviceAccountName"] = place.service_account
    return {"spec": {**spec, **_where(plan, place, instances)}}


def _where(plan: Plan, place: Place, instances: Instances) -> dict[str, Any]:
    """The labels and taints of the nodes on which a pod may run."""
    labels: dict[str, str] = {}
    tolerations: list[Mapping[str, str]] = []
    if not is_size(instances.instance):
        labels["node.kubernetes.io/instance-type"] = instances.instance.removeprefix("ml.")
    if instances.gpus:
        tolerations.append(_NVIDIA)
    # The user's own are for nodes with GPUs, if there are any.
    any_gpus = any(machines.gpus for _, machines in plan.groups)
    if instances.gpus or not any_gpus:
        labels |= place.node_selector
        tolerations += place.tolerations
    where: dict[str, Any] = {"nodeSelector": labels, "tolerations": tolerations}
    return {name: value for name, value in where.items() if value}


def _resources(instances: Instances) -> dict[str, Any]:
    """The resources that a pod requests: all of a size, or of a type of machine all processors but
    one, which Kubernetes itself needs.
    """
    limits: dict[str, str] = {}
    if gib := memory_gib(instances.instance):
        limits["memory"] = f"{gib}Gi"
    if gpus := _gpus(instances):
        limits["nvidia.com/gpu"] = str(gpus)
    cpus = vcpus(instances.instance)
    if not is_size(instances.instance):
        cpus = max(1, cpus - 1)
    resources = {"requests": {"cpu": str(cpus), **limits}}
    if limits:
        resources["limits"] = limits
    return resources
