"""A training job as SageMaker is asked for it: `requests(Job(…))` are the arguments of `CreateTrainingJob`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from train.cluster.scale import LEARNER, ROLLOUT, Heterogeneous, Homogeneous, Single
from train.sagemaker.hyperparameters import Meeting, encode
from train.sagemaker.metric_lines import metric_definitions

CODE, TOKEN = "code", "token"
"""Names of the input channels: the source, and the secret that the machines know each other by."""
SECOND_JOB = "-rollout"
"""The end of the name of the job that plays, if it is one of its own."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """All that a request says; nothing in it is secret."""

    name: str
    """Of the job, unique in account and region: letters, digits and hyphens, at most 55."""
    image: str
    """URI of the image in ECR."""
    role: str
    """ARN of the role that the job acts as."""
    bucket: str
    prefix: str
    """Everything of the job lies under s3://bucket/prefix/name/."""
    region: str
    scale: Single | Homogeneous | Heterogeneous
    hyperparameters: Mapping[str, str]
    """Encoded."""
    spot: bool = False
    """On spare capacity: much cheaper, may be interrupted; it then goes on from its last checkpoint."""
    max_seconds: int = 24 * 3600
    """The job is stopped after so long."""
    max_wait_seconds: int | None = None
    """For spot: with the time that it waits for capacity; None: twice `max_seconds`."""
    volume_gb: int = 50
    subnets: Sequence[str] = ()
    security_groups: Sequence[str] = ()
    keep_alive_seconds: int = 0
    """Keep the instances for the next job so long (a warm pool)."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Where everything of it lies in the bucket."""
        return "/".join(filter(None, (self.prefix.strip("/"), self.name)))

    @property
    def place(self) -> str:
        """The same as a URI."""
        return f"s3://{self.bucket}/{self.key}"

    @property
    def is_two_jobs(self) -> bool:
        """Whether the instances that play are a job of their own."""
        return isinstance(self.scale, Heterogeneous) and self.scale.mode == "two-jobs"


def requests(job: Job) -> list[dict[str, Any]]:
    """The arguments of `CreateTrainingJob`: of one job, or of the one that learns and the one that plays."""
    if not job.is_two_jobs:
        return [_request(job, job.name, job.hyperparameters, _resources(job))]
    scale: Any = job.scale
    both = []
    for group, name in ((LEARNER, job.name), (ROLLOUT, job.name + SECOND_JOB)):
        instances = getattr(scale, group)
        meeting = Meeting(group == LEARNER, scale.rollout.count, job.bucket, job.key, job.region)
        hyperparameters = {**job.hyperparameters, **{key: encode(value) for key, value in meeting.hyperparameters().items()}}
        resources = {"InstanceType": instances.instance, "InstanceCount": instances.count}
        both.append(_request(job, name, hyperparameters, resources))
    # Only the machine that leads has anything to keep.
    both[1].pop("CheckpointConfig")
    return both


def _request(job: Job, name: str, hyperparameters: Mapping[str, str], resources: Mapping[str, Any]) -> dict[str, Any]:
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
        "CheckpointConfig": {"S3Uri": f"{job.place}/checkpoints", "LocalPath": "/opt/ml/checkpoints"},
        "Tags": [{"Key": key, "Value": value} for key, value in {"procsnake": "training", **job.tags}.items()],
    }
    if job.spot:
        request["EnableManagedSpotTraining"] = True
        request["StoppingCondition"]["MaxWaitTimeInSeconds"] = job.max_wait_seconds or 2 * job.max_seconds
    if job.subnets or job.security_groups:
        request["VpcConfig"] = {"Subnets": list(job.subnets), "SecurityGroupIds": list(job.security_groups)}
    if job.keep_alive_seconds:
        request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = job.keep_alive_seconds
    return request


def _resources(job: Job) -> dict[str, Any]:
    scale: Any = job.scale
    if isinstance(scale, Heterogeneous):
        groups = [(group, getattr(scale, group)) for group in (LEARNER, ROLLOUT)]
        return {
            "InstanceGroups": [
                {"InstanceGroupName": name, "InstanceType": machines.instance, "InstanceCount": machines.count}
                for name, machines in groups
            ]
        }
    return {"InstanceType": scale.instance, "InstanceCount": getattr(scale, "count", 1)}


def _channel(job: Job, name: str) -> dict[str, Any]:
    return channel(name, f"{job.place}/{name}/")


def channel(name: str, uri: str) -> dict[str, Any]:
    """An input channel that copies what lies under `uri` to every machine."""
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "InputMode": "File", "DataSource": {"S3DataSource": source}}


_KEPT = (
    "RoleArn", "AlgorithmSpecification", "HyperParameters", "InputDataConfig", "OutputDataConfig", "ResourceConfig",
    "StoppingCondition", "CheckpointConfig", "EnableManagedSpotTraining", "VpcConfig",
)  # fmt: skip


def resumed_requests(described: Sequence[Mapping[str, Any]], name: str, token_uri: str) -> list[dict[str, Any]]:
    """Requests of a job `name` that goes on from the checkpoints of one that SageMaker describes (`DescribeTrainingJob`).

    Source, size and place of the checkpoints are the same; the machines get another token, at `token_uri`.
    """
    return [_resumed(one, name + (SECOND_JOB if k else ""), token_uri) for k, one in enumerate(described)]


def _resumed(described: Mapping[str, Any], name: str, token_uri: str) -> dict[str, Any]:
    request = {key: described[key] for key in _KEPT if described.get(key)}
    # The answer has more than a request may: what the service added.
    request["AlgorithmSpecification"] = {
        key: described["AlgorithmSpecification"][key] for key in ("TrainingImage", "TrainingInputMode", "MetricDefinitions")
        if key in described["AlgorithmSpecification"]
    }  # fmt: skip
    request["InputDataConfig"] = [
        channel(TOKEN, token_uri) if given["ChannelName"] == TOKEN else given for given in request["InputDataConfig"]
    ]
    tags = {"procsnake": "training", "procsnake-resumes": described["TrainingJobName"]}
    return {"TrainingJobName": name, **request, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
