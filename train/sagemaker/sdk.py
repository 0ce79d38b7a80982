"""Training jobs and endpoints by version 3 of AWS's SageMaker Python SDK (extra [sagemaker]).

It is for scripts that use the SDK; the command line doesn't need it. The SDK's defaults don't fit
our stack: a bucket that it creates, a role that it simulates, an hour's limit, no metrics. So
everything is passed to it explicitly."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import bundle as bundles
from envs.common.errors import ConfigError, MissingDependencyError, pip_install
from train.sagemaker.account import Account, aws_errors
from train.sagemaker.job import Job, requests
from train.sagemaker.jobs import all_or_none
from train.sagemaker.request_rules import check_requests
from train.sagemaker.source import archive

if TYPE_CHECKING:
    from sagemaker.core.resources import Endpoint, TrainingJob
    from sagemaker.train import ModelTrainer

_NO_TELEMETRY = {
    "SchemaVersion": "1.0",
    "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}},
}
_MODEL = "model.tar.gz"


def session(region: str, bucket: str, *, for_pipeline: bool = False) -> Any:
    """Return a session of the SDK that uses our `bucket` and sends no telemetry.

    With `for_pipeline` it is a `PipelineSession`. Raises `MissingDependencyError` without version 3
    of the SDK.
    """
    with _sdk(region):
        import boto3
        from sagemaker.core.helper.session_helper import Session
        from sagemaker.core.workflow.pipeline_context import PipelineSession

        kind = PipelineSession if for_pipeline else Session
        aws = boto3.session.Session(region_name=region)
        return kind(boto_session=aws, default_bucket=bucket, sagemaker_config=_NO_TELEMETRY)


def trainers(job: Job, sdk_session: Any = None) -> list[ModelTrainer]:
    """Return a `ModelTrainer` for each request of the job: one, or two for two jobs.

    Their `train()` sends what `requests` describes. Source and token must have been uploaded
    (`train.sagemaker.jobs.upload`). The SDK appends the present second to the jobs' names;
    `create_jobs` keeps them. Raises `RequestError` for what SageMaker would refuse, and
    `MissingDependencyError`."""
    new_requests = requests(job)
    check_requests(new_requests)
    sdk_session = sdk_session or session(job.region, job.bucket)
    with _sdk(job.region):
        return [_trainer(request, sdk_session) for request in new_requests]


def create_jobs(job: Job) -> list[TrainingJob]:
    """Create the job, or both jobs, under exactly their names.

    `procsnake job` finds the second of two by its name. Source and token must have been uploaded.
    Raises `RequestError`, `AWSError` and `MissingDependencyError`."""
    new_requests = requests(job)
    check_requests(new_requests)
    with _sdk(job.region):
        import boto3
        from sagemaker.core.resources import TrainingJob

        aws = boto3.session.Session(region_name=job.region)
        created: list[TrainingJob] = []
        with all_or_none(Account(job.region), warnings.warn) as names:
            for request in new_requests:
                names.append(request["TrainingJobName"])
                with aws_errors(f"creating {names[-1]}"):
                    created.append(
                        TrainingJob.create(session=aws, region=job.region, **_snake_case(request))
                    )
        return created


def deploy(
    bundle: str | os.PathLike[str],
    *,
    name: str,
    image: str,
    role: str,
    bucket: str,
    region: str,
    instance: str = "ml.c6i.large",
    prefix: str = "procsnake",
    wait: bool = True,
) -> Endpoint:
    """Make an endpoint `name` that serves a bundle, in the server's image (docs/deploying.md).

    It costs money until it is removed. The bundle is uploaded to
    s3://bucket/prefix/endpoints/name/. `role` must be allowed to read it and to pull `image`.
    Raises `BundleError` for a damaged bundle, `ConfigError` for one in a zip, `AWSError` and
    `MissingDependencyError`."""
    key = f"{prefix.strip('/')}/endpoints/{name}/{_MODEL}"
    packed = _packed(bundle)
    sdk_session = session(region, bucket)
    with aws_errors(f"uploading to s3://{bucket}/{key}"):
        Account(region).s3.put_object(Bucket=bucket, Key=key, Body=packed)
    with _sdk(region):
        from sagemaker.serve import ModelBuilder

        builder = ModelBuilder(
            image_uri=image,
            s3_model_data_url=f"s3://{bucket}/{key}",
            role_arn=role,
            sagemaker_session=sdk_session,
            instance_type=instance,
        )
        with aws_errors(f"creating the endpoint {name}"):
            builder.build(model_name=name)
            return builder.deploy(endpoint_name=name, instance_type=instance, wait=wait)


def _packed(bundle: str | os.PathLike[str]) -> bytes:
    folder: Path = bundles.load(bundle).path
    if not folder.is_dir():
        raise ConfigError(
            f"{folder} is a zip; give the folder of a bundle, or a run: SageMaker unpacks {_MODEL}"
            " alone"
        )
    names = [one for one in bundles.MAX_FILE_BYTES if (folder / one).is_file()]
    return archive({one: (folder / one).read_bytes() for one in names})


def _trainer(request: Mapping[str, Any], sdk_session: Any) -> ModelTrainer:
    from sagemaker.core.training import configs
    from sagemaker.train import ModelTrainer

    arguments = _snake_case(request)
    algorithm = arguments["algorithm_specification"]
    compute = dict(arguments["resource_config"])
    if "enable_managed_spot_training" in arguments:
        compute["enable_managed_spot_training"] = arguments["enable_managed_spot_training"]
    network = dict(arguments.get("vpc_config", {}))
    for name in ("enable_network_isolation", "enable_inter_container_traffic_encryption"):
        if name in arguments:
            network[name] = arguments[name]
    checkpoints = arguments.get("checkpoint_config")
    trainer = ModelTrainer(
        sagemaker_session=sdk_session,
        role=arguments["role_arn"],
        base_job_name=arguments["training_job_name"],
        training_image=algorithm["training_image"],
        training_input_mode=algorithm["training_input_mode"],
        hyperparameters=arguments["hyper_parameters"],
        input_data_config=[
            configs.Channel(**channel) for channel in arguments["input_data_config"]
        ],
        output_data_config=configs.OutputDataConfig(**arguments["output_data_config"]),
        compute=configs.Compute(**compute),
        stopping_condition=configs.StoppingCondition(**arguments["stopping_condition"]),
        checkpoint_config=configs.CheckpointConfig(**checkpoints) if checkpoints else None,
        networking=configs.Networking(**network) if network else None,
        environment=arguments.get("environment", {}),
        tags=[configs.Tag(**tag) for tag in arguments["tags"]],
    )
    trainer.with_metric_definitions(
        [configs.MetricDefinition(**one) for one in algorithm["metric_definitions"]]
    )
    if "retry_strategy" in arguments:
        trainer.with_retry_strategy(configs.RetryStrategy(**arguments["retry_strategy"]))
    if "remote_debug_config" in arguments:
        trainer.with_remote_debug_config(
            configs.RemoteDebugConfig(**arguments["remote_debug_config"])
        )
    return trainer


def _snake_case(value: Any) -> Any:
    """A request in the names of the SDK. Keys of hyperparameters and environment are the user's,
    and stay.
    """
    if isinstance(value, list | tuple):
        return [_snake_case(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    renamed = {}
    for key, item in value.items():
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()
        renamed[name] = item if key in _USERS_KEYS else _snake_case(item)
    return renamed


_USERS_KEYS = ("HyperParameters", "Environment")


@contextmanager
def _sdk(region: str) -> Iterator[None]:
    """Set the environment variables that the SDK needs, for as long as it is called.

    Raises `MissingDependencyError` if it isn't installed. sagemaker.serve 1.27.0 needs a region as
    soon as it is imported. And the SDK asks IAM for rights over all buckets, which a role that may
    use one bucket doesn't have."""
    settings = {"AWS_DEFAULT_REGION": region, "SAGEMAKER_VALIDATE_ROLE": "false"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("sagemaker"):
            raise
        raise MissingDependencyError(
            "sagemaker 3",
            feature="The SageMaker Python SDK",
            install=pip_install("procsnake[sagemaker]"),
        ) from error
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
