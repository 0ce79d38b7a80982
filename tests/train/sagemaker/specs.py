"""Jobs of every kind, whose requests lie in golden/."""

from __future__ import annotations

from typing import Any

from train.sagemaker.job import Job
from train.settings.scale import Heterogeneous, Homogeneous, Instances, Single

VPC = {"subnets": ("subnet-0a1b2c3d",), "security_groups": ("sg-0a1b2c3d",)}
SINGLE = Single(instance="ml.c5.4xlarge")
SECURE = {
    "environment": {"PROCSNAKE_JOIN_SECONDS": "60"},
    "encrypt": True,
    "isolate": True,
    "retries": 3,
    "kms_key": "arn:aws:kms:eu-west-1:123456789012:key/1",
    "tags": {"team": "snakes"},
}
"""What protects a job."""
TWO_KINDS = {
    "learner": Instances(instance="ml.g5.2xlarge"),
    "rollout": Instances(instance="ml.c5.9xlarge", count=2),
}


def job(scale: Any, **changed: Any) -> Job:
    given: dict[str, Any] = {
        "name": "procsnake-battlesnake-ppo-20261121-120000",
        "image": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/procsnake:latest",
        "role": "arn:aws:iam::123456789012:role/procsnake-TrainingRole",
        "bucket": "procsnake-bucket",
        "prefix": "procsnake",
        "region": "eu-west-1",
        "hyperparameters": {"experiment": "experiment.yaml", "seed": "1"},
    }
    return Job(scale=scale, **{**given, **changed})


JOBS = {
    "single": job(SINGLE, keep_alive_seconds=600, tags={"team": "snakes"}),
    "homogeneous": job(
        Homogeneous(instance="ml.c5.4xlarge", count=3), max_seconds=7200, volume_gb=100
    ),
    "groups": job(Heterogeneous(**TWO_KINDS)),
    "two-jobs": job(Heterogeneous(**TWO_KINDS, mode="two-jobs"), **VPC),
    "spot": job(
        Homogeneous(instance="ml.c5.4xlarge", count=3),
        spot=True,
        max_seconds=3600,
        max_wait_seconds=10800,
    ),
}
