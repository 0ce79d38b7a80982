"""Describes a training job. `requests(Job(…))` returns the arguments of `CreateTrainingJob`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from train.sagemaker.hyperparameters import Meeting, encode
from train.sagemaker.metric_lines import metric_definitions
from train.sagemaker.request_rules import OWN_TAG
from train.settings.instances import has_own_disk
from train.settings.scale import LEARNER, ROLLOUT, Heterogeneous, Homogeneous, Single

CODE = "code"
TOKEN = "token"
"""The names of the input channels: the source, and the secret by which the machines know each
other.
"""
DASHBOARD = "PROCSNAKE_DASHBOARD"
"""The environment variable that is 1 in containers whose head has Ray's dashboard."""
TRACKERS = "PROCSNAKE_TRACKERS"
"""The environment variable with the names of the trackers that also get a job's curve, separated by
spaces.
"""
JOIN_SECONDS = "PROCSNAKE_JOIN_SECONDS"
"""The environment variable that says how long a machine waits for the others."""
_PATIENCE_OF_TWO = "7200"
"""`JOIN_SECONDS` of two jobs: one may have its machines while the other waits for capacity, which
may take hours for GPUs.
"""
SECOND_JOB = "-rollout"
"""The end of the name of the job that plays, if it is one of its own."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that is in a request. Nothing in it is secret."""

    name: str
    """The job's name, unique in account and region: at most 55 letters, digits and hyphens."""
    image: str
    """URI of the image in ECR."""
    role: str
    """The ARN of the role as which the job acts."""
    bucket: str
    prefix: str
    """Checkpoints and output of the job lie under s3://bucket/prefix/name/, its source and token
    under prefix/inputs/name/.
    """
    region: str
    scale: Single | Homogeneous | Heterogeneous
    hyperparameters: Mapping[str, str]
    """The hyperparameters, encoded."""
    spot: bool = False
    """Use spare capacity, which is much cheaper but may be interrupted. The job then continues from
    its last checkpoint.
    """
    max_seconds: int = 24 * 3600
    """The job is stopped after so many seconds."""
    max_wait_seconds: int | None = None
    """A job on spot is stopped after so many seconds, including those in which it waits for
    capacity; None means twice `max_seconds`.
    """
    volume_gb: int = 50
    subnets: Sequence[str] = ()
    security_groups: Sequence[str] = ()
    keep_alive_seconds: int = 0
    """Seconds for which the instances are kept for the next job (a warm pool)."""
    tags: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the containers. Everyone who may see the job sees them."""
    encrypt: bool = False
    """Encrypt what the instances send to each other. That makes jobs on several instances
    slower.
    """
    kms_key: str = ""
    """The ID or ARN of the KMS key for the source, the token, the output and the instances' disks;
    empty for AWS's own keys.
    """
    isolate: bool = False
    """Let the containers reach nothing but each other."""
    retries: int = 0
    """Number of times that SageMaker starts the job again after a fault of its own."""
    remote_debug: bool = False
    """Let people with the right to it open a shell in the running containers, by AWS Systems
    Manager.
    """

    dashboard: bool = False
    """Let people with that right reach Ray's dashboard, and Prometheus if the image has it. It
    includes `remote_debug`.
    """

    experiment: str = ""
    """The experiment of SageMaker Experiments in which the job is a trial; empty for none."""
    mlflow: str = ""
    """The ARN of the managed MLflow server that gets the curve; empty for none. The image must have
    MLflow.
    """

    @property
    def key(self) -> str:
        """The key in the bucket below which checkpoints and output of the job lie."""
        return "/".join(filter(None, (self.prefix.strip("/"), self.name)))

    @property
    def inputs_key(self) -> str:
        """The key below which source and token are. All jobs share it, so that the bucket can let
        them expire.
        """
        return "/".join(filter(None, (self.prefix.strip("/"), "inputs", self.name)))

    @property
    def place(self) -> str:
        """The URI of what lies below `key`."""
        return f"s3://{self.bucket}/{self.key}"

    @property
    def is_two_jobs(self) -> bool:
        """Whether the instances that play are a job of their own."""
        return isinstance(self.scale, Heterogeneous) and self.scale.mode == "two-jobs"


def requests(job: Job) -> list[dict[str, Any]]:
    """Return the arguments of `CreateTrainingJob` for one job, or for a learning and a playing
    job.
    """
    if not job.is_two_jobs:
        return [_request(job, job.name, job.hyperparameters, _resources(job))]
    scale: Any = job.scale
    both = []
    for group, name in ((LEARNER, job.name), (ROLLOUT, job.name + SECOND_JOB)):
        instances = getattr(scale, group)
        meeting = Meeting(group == LEARNER, scale.rollout.count, job.bucket, job.key, job.region)
        hyperparameters = dict(job.hyperparameters)
        for key, value in meeting.hyperparameters().items():
            hyperparameters[key] = encode(value)
        resources = {"InstanceType": instances.instance, "InstanceCount": instances.count}
        both.append(_request(job, name, hyperparameters, resources))
    # Only the machine that leads has anything to keep.
    both[1].pop("CheckpointConfig")
    return both


def _request(
    job: Job, name: str, hyperparameters: Mapping[str, str], resources: Mapping[str, Any]
) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TrainingJobName": name,
        "RoleArn": job.role,
        "AlgorithmSpecification": {
            "TrainingImage": job.image,
            "TrainingInputMode": "File",
            "MetricDefinitions": metric_definitions(),
        },
        "HyperParameters": dict(hyperparameters),
        "InputDataConfig": [_channel(job, CODE), _channel(job, TOKEN)],
        "OutputDataConfig": {"S3OutputPath": f"{job.place}/output"},
        "ResourceConfig": {**resources, "VolumeSizeInGB": job.volume_gb},
        "StoppingCondition": {"MaxRuntimeInSeconds": job.max_seconds},
        "CheckpointConfig": {
            "S3Uri": f"{job.place}/checkpoints",
            "LocalPath": "/opt/ml/checkpoints",
        },
        "Tags": [{"Key": key, "Value": value} for key, value in {**OWN_TAG, **job.tags}.items()],
    }
    if job.spot:
        request["EnableManagedSpotTraining"] = True
        request["StoppingCondition"]["MaxWaitTimeInSeconds"] = (
            job.max_wait_seconds or 2 * job.max_seconds
        )
    if job.subnets or job.security_groups:
        request["VpcConfig"] = {
            "Subnets": list(job.subnets),
            "SecurityGroupIds": list(job.security_groups),
        }
    if job.experiment:
        request["ExperimentConfig"] = {
            "ExperimentName": job.experiment,
            "TrialName": job.name,
            "TrialComponentDisplayName": name,
        }
    if job.keep_alive_seconds:
        request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = job.keep_alive_seconds
    return _with_security(job, request)


def _with_security(job: Job, request: dict[str, Any]) -> dict[str, Any]:
    if environment := _environment(job):
        request["Environment"] = environment
    if job.encrypt:
        request["EnableInterContainerTrafficEncryption"] = True
    if job.isolate:
        request["EnableNetworkIsolation"] = True
    if job.retries:
        request["RetryStrategy"] = {"MaximumRetryAttempts": job.retries}
    if job.remote_debug or job.dashboard:
        request["RemoteDebugConfig"] = {"EnableRemoteDebug": True}
    if job.kms_key:
        request["OutputDataConfig"]["KmsKeyId"] = job.kms_key
        # Disks that are part of an instance are encrypted by its hardware, and SageMaker refuses a
        # key for them.
        if not any(has_own_disk(kind) for kind in _instance_types(request["ResourceConfig"])):
            request["ResourceConfig"]["VolumeKmsKeyId"] = job.kms_key
    return request


def _environment(job: Job) -> dict[str, str]:
    own = {}
    if job.dashboard:
        own[DASHBOARD] = "1"
    if job.mlflow:
        own |= {
            TRACKERS: "mlflow",
            "MLFLOW_TRACKING_URI": job.mlflow,
            "MLFLOW_EXPERIMENT_NAME": job.experiment or "procsnake",
        }
    if job.is_two_jobs:
        own[JOIN_SECONDS] = _PATIENCE_OF_TWO
    return {**own, **job.environment}


def _instance_types(resources: Mapping[str, Any]) -> list[str]:
    return [group["InstanceType"] for group in resources.get("InstanceGroups", [resources])]


def _resources(job: Job) -> dict[str, Any]:
    scale: Any = job.scale
    if isinstance(scale, Heterogeneous):
        groups = [(group, getattr(scale, group)) for group in (LEARNER, ROLLOUT)]
        return {
            "InstanceGroups": [
                {
                    "InstanceGroupName": name,
                    "InstanceType": machines.instance,
                    "InstanceCount": machines.count,
                }
                for name, machines in groups
            ]
        }
    return {"InstanceType": scale.instance, "InstanceCount": getattr(scale, "count", 1)}


def _channel(job: Job, name: str) -> dict[str, Any]:
    return channel(name, f"s3://{job.bucket}/{job.inputs_key}/{name}/")


def channel(name: str, uri: str) -> dict[str, Any]:
    """Return an input channel that copies everything under `uri` to every machine."""
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "InputMode": "File", "DataSource": {"S3DataSource": source}}


_SAME_WHEN_RESUMED = (
    "RoleArn",
    "AlgorithmSpecification",
    "HyperParameters",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "StoppingCondition",
    "CheckpointConfig",
    "EnableManagedSpotTraining",
    "VpcConfig",
    "Environment",
    "RetryStrategy",
    "EnableInterContainerTrafficEncryption",
    "EnableNetworkIsolation",
    "RemoteDebugConfig",
    "ExperimentConfig",
)
_OF_ALGORITHM = ("TrainingImage", "TrainingInputMode", "MetricDefinitions")


def resumed_requests(
    described: Sequence[Mapping[str, Any]],
    name: str,
    token_uri: str,
    *,
    tags: Mapping[str, str] | None = None,
    sizes: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return requests for a job `name` that continues from the checkpoints of a job, given by
    `DescribeTrainingJob`.

    Source, instances and place of the checkpoints stay the same. The machines get another token, at
    `token_uri`. `tags` are the job's own, which its description lacks; `sizes` are encoded
    hyperparameters that replace its own."""
    return [
        _resumed(one, new_name, token_uri, tags or {}, sizes or {})
        for one, new_name in zip(described, (name, name + SECOND_JOB), strict=False)
    ]


def _resumed(
    described: Mapping[str, Any],
    name: str,
    token_uri: str,
    tags: Mapping[str, str],
    sizes: Mapping[str, str],
) -> dict[str, Any]:
    request = {key: described[key] for key in _SAME_WHEN_RESUMED if described.get(key)}
    request["HyperParameters"] = {**described["HyperParameters"], **sizes}
    # The service adds keys to a description that no request may have.
    algorithm = described["AlgorithmSpecification"]
    request["AlgorithmSpecification"] = {
        key: algorithm[key] for key in _OF_ALGORITHM if key in algorithm
    }
    channels = {one["ChannelName"]: one for one in request["InputDataConfig"]}
    if TOKEN in channels:
        channels[TOKEN] = channel(TOKEN, token_uri)
    request["InputDataConfig"] = list(channels.values())
    own = {**OWN_TAG, "procsnake-resumes": described["TrainingJobName"]}
    return {
        "TrainingJobName": name,
        **request,
        "Tags": [{"Key": key, "Value": value} for key, value in {**tags, **own}.items()],
    }
