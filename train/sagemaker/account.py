"""The user's AWS account: clients, errors that say what to do, and the resources of a job."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from envs.common.errors import ConfigError, MissingDependencyError, ProcsnakeError, pip_install

_HINTS = {
    "AccessDenied": (
        "the credentials in use lack a permission; docs/sagemaker.md lists what is needed"
    ),
    "ExpiredToken": "the credentials have expired; log in again (aws sso login)",
    "ResourceLimitExceeded": (
        "the account's quota for this instance type is used up; ask for more under Service Quotas"
    ),
    "NoSuchBucket": "there is no such bucket; --bucket or --stack names it",
    "ThrottlingException": "too many calls; try again in a minute",
}

READING = "reading AWS_PROFILE and the files in ~/.aws"
"""The words of an error for what the first client or description of a service reads."""


class AWSError(ProcsnakeError):
    """AWS refused a call or couldn't be reached."""


@contextmanager
def aws_errors(doing: str) -> Iterator[None]:
    """Turn boto3's exceptions into one line."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        message = error.response["Error"].get("Message", "")
        sentences = [f"{doing}: {code}: {message}".rstrip(".")]
        sentences += [hint for name, hint in _HINTS.items() if code.startswith(name)]
        raise AWSError(". ".join(sentences)) from error
    except (BotoCoreError, Boto3Error) as error:
        raise AWSError(
            f"{doing}: {error}. Are credentials and region set (aws configure), and is there a"
            " network?"
        ) from error


def may_pass(error: AWSError) -> bool:
    """Return whether the same call may succeed later.

    It may if the network or the service failed, or if there were too many calls."""
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

    cause = error.__cause__
    if isinstance(cause, ClientError):
        code = cause.response["Error"]["Code"]
        status = cause.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return code in _TOO_MANY or status >= _SERVERS_FAULT
    return isinstance(cause, ConnectionError | HTTPClientError)


_TOO_MANY = (
    "ThrottlingException",
    "Throttling",
    "ThrottledException",
    "TooManyRequestsException",
    "RequestLimitExceeded",
)
_SERVERS_FAULT = 500


@dataclass(frozen=True)
class Account:
    """The user's AWS account in one region, with a client for each service."""

    region: str

    @classmethod
    def of(cls, region: str | None) -> Account:
        """Return the account in `region`, or in the region of the environment.

        Raises `ConfigError` if there is no region, `AWSError` if the configuration can't be read,
        and `MissingDependencyError` without boto3."""
        try:
            import boto3
        except ImportError as error:
            raise MissingDependencyError(
                "boto3", feature="SageMaker", install=pip_install("procsnake[aws]")
            ) from error
        with aws_errors(READING):
            region = region or os.environ.get("AWS_REGION") or boto3.session.Session().region_name
        if not region:
            raise ConfigError(
                "no AWS region is set; give one, e.g. --region eu-west-1, or run: aws configure"
            )
        return cls(region)

    def _client(self, service: str) -> Any:
        import boto3

        with aws_errors(READING):
            return boto3.client(service, region_name=self.region)

    @cached_property
    def sagemaker(self) -> Any:
        """The client of SageMaker."""
        return self._client("sagemaker")

    @cached_property
    def s3(self) -> Any:
        """The client of S3."""
        return self._client("s3")

    @cached_property
    def logs(self) -> Any:
        """The client of CloudWatch Logs."""
        return self._client("logs")

    @cached_property
    def codebuild(self) -> Any:
        """The client of CodeBuild."""
        return self._client("codebuild")

    def outputs(self, stack: str) -> dict[str, str]:
        """Return the outputs of a CloudFormation stack, by name."""
        with aws_errors(f"reading the stack {stack}"):
            answer = self._client("cloudformation").describe_stacks(StackName=stack)
        outputs = answer["Stacks"][0].get("Outputs", [])
        return {output["OutputKey"]: output["OutputValue"] for output in outputs}


@dataclass(frozen=True, kw_only=True)
class JobResources:
    """The resources that a job needs. train/sagemaker/stack.yaml makes all of them."""

    role: str
    image: str
    bucket: str
    subnets: Sequence[str] = ()
    security_groups: Sequence[str] = ()

    @classmethod
    def find(
        cls, account: Account, explicit: dict[str, str | None], stack: str | None
    ) -> JobResources:
        """Find the resources in `explicit`, else in environment variables (PROCSNAKE_ROLE, …), else
        in the stack's outputs.

        Raises `ConfigError`, which names what is missing.
        """
        outputs = account.outputs(stack) if stack else {}
        resources: dict[str, str] = {}
        for name, output in _OUTPUTS.items():
            in_environment = os.environ.get(f"PROCSNAKE_{name.upper()}")
            resources[name] = explicit.get(name) or in_environment or outputs.get(output, "")
        if missing := [name for name in ("role", "image", "bucket") if not resources[name]]:
            options = ", ".join(f"--{name}" for name in missing)
            raise ConfigError(
                f"a job needs {' and '.join(missing)}: give {options}, or --stack NAME, whose"
                " outputs name them"
            )
        _check_bucket(resources["bucket"])
        _check_image(resources["image"], account.region)
        return cls(
            role=resources["role"],
            image=resources["image"],
            bucket=resources["bucket"],
            subnets=_items(resources["subnets"]),
            security_groups=_items(resources["security_groups"]),
        )


def _items(text: str) -> tuple[str, ...]:
    """The items of a text with commas between them."""
    return tuple(filter(None, text.split(",")))


_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_IMAGE = re.compile(
    r"\d{12}\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/"
    r"[a-z0-9._/-]+(?::[\w.-]+|@sha256:[0-9a-f]{64})?"
)


def _check_bucket(bucket: str) -> None:
    if not _BUCKET.fullmatch(bucket):
        raise ConfigError(
            f"bucket {bucket!r} is not the name of a bucket in S3; give the name alone, e.g."
            " --bucket my-bucket"
        )


def _check_image(image: str, region: str) -> None:
    match = _IMAGE.fullmatch(image)
    if not match:
        form = f"123456789012.dkr.ecr.{region}.amazonaws.com/procsnake:latest"
        raise ConfigError(
            f"image {image!r} is not in ECR, from where SageMaker takes images; its URI is like"
            f" {form}"
        )
    if match["region"] != region:
        raise ConfigError(
            f"image {image!r} is in {match['region']}, but the job runs in {region}; copy it there,"
            " or use --region"
        )


_OUTPUTS = {
    "role": "TrainingRole",
    "image": "Image",
    "bucket": "Bucket",
    "subnets": "Subnets",
    "security_groups": "SecurityGroups",
}
"""The stack's outputs by the names of `JobResources`."""
