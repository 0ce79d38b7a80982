"""Checks a request before it is sent.

The rules are botocore's model of the service, and some that it lacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from envs.common.errors import MissingDependencyError, ProcsnakeError, pip_install
from envs.common.plain_values import looks_like_a_secret
from train.sagemaker.account import READING, aws_errors

_MLFLOW = re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:\d{12}:mlflow-(tracking-server|app)/\S+")
_LONGEST_SECONDS = 28 * 24 * 3600
OWN_TAG = {"procsnake": "training"}
"""The tag of all jobs. train/sagemaker/stack.yaml allows none without it."""


class RequestError(ProcsnakeError):
    """SageMaker would refuse this request, or it would not do what the user wants."""


def check_requests(requests: Sequence[Mapping[str, Any]]) -> None:
    """Raise `RequestError`, which names all faults of a request of `CreateTrainingJob`, or of two
    for two jobs.
    """
    faults: list[str] = []
    for request in requests:
        faults += [*model_faults(request), *_rule_faults(request)]
    if len(requests) == 2:
        faults += _pair_faults(requests)
    if faults:
        raise RequestError(f"this job can't be asked for: {'; '.join(dict.fromkeys(faults))}")


def check_tuning(request: Mapping[str, Any]) -> None:
    """Raise `RequestError`, which names all faults of a request of
    `CreateHyperParameterTuningJob`.
    """
    definition = request["TrainingJobDefinition"]
    names = definition["StaticHyperParameters"]
    faults = [*model_faults(request, "CreateHyperParameterTuningJob")]
    faults += list(_rule_faults({**definition, "HyperParameters": names, "Tags": request["Tags"]}))
    if faults:
        raise RequestError(f"this search can't be asked for: {'; '.join(dict.fromkeys(faults))}")


@cache
def _input_shape(operation: str) -> Any:
    try:
        import botocore.session
    except ImportError as error:
        raise MissingDependencyError(
            "boto3", feature="SageMaker", install=pip_install("procsnake[aws]")
        ) from error
    with aws_errors(READING):
        model = botocore.session.get_session().get_service_model("sagemaker")
    return model.operation_model(operation).input_shape


def model_faults(request: Mapping[str, Any], operation: str = "CreateTrainingJob") -> list[str]:
    """Return all violations of the service's model.

    It checks types and required members, and also what boto3 doesn't: choices, patterns, and
    limits of lengths and numbers."""
    from botocore.validate import ParamValidator

    shape = _input_shape(operation)
    report = ParamValidator().validate(request, shape).generate_report().splitlines()
    return [*filter(None, report), *_limits(request, shape, "")]


def _limits(value: Any, shape: Any, path: str) -> Iterator[str]:
    kind = shape.type_name
    name = path.lstrip(".")
    if kind == "structure" and isinstance(value, Mapping):
        for key in value.keys() & shape.members.keys():
            yield from _limits(value[key], shape.members[key], f"{path}.{key}")
    elif kind == "list" and isinstance(value, list | tuple):
        yield from _outside(len(value), shape, f"{name} has {len(value)} items")
        for k, item in enumerate(value):
            yield from _limits(item, shape.member, f"{path}[{k}]")
    elif kind == "map" and isinstance(value, Mapping):
        yield from _outside(len(value), shape, f"{name} has {len(value)} entries")
        for key, item in value.items():
            yield from _limits(key, shape.key, f"{path} (the name {key!r})")
            yield from _limits(item, shape.value, f"{path}.{key}")
    elif kind == "string" and isinstance(value, str):
        yield from _text_faults(value, shape, name)
    elif kind in ("integer", "long", "float", "double") and isinstance(value, int | float):
        yield from _outside(value, shape, f"{name} is {value}")


def _text_faults(value: str, shape: Any, name: str) -> Iterator[str]:
    if shape.enum and value not in shape.enum:
        yield f"{name} is {value!r}, which SageMaker doesn't offer"
    yield from _outside(len(value), shape, f"{name} has {len(value)} characters")
    pattern = shape.metadata.get("pattern")
    # Python has no classes of Unicode characters, \p{L} and the like, which the patterns of tags
    # are made of.
    if pattern and r"\p" not in pattern and not re.fullmatch(pattern, value):
        yield f"{name} is {value!r}, which is not of the form {pattern}"


def _outside(number: float, shape: Any, text: str) -> Iterator[str]:
    least = shape.metadata.get("min")
    most = shape.metadata.get("max")
    if least is not None and number < least:
        yield f"{text}; at least {least} are needed"
    if most is not None and number > most:
        yield f"{text}; at most {most} are allowed"


def _rule_faults(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults that the service refuses though its model allows them, by AWS's
    documentation and error messages.
    """
    resources = request.get("ResourceConfig", {})
    stopping = request.get("StoppingCondition", {})
    spot = request.get("EnableManagedSpotTraining", False)
    wait = stopping.get("MaxWaitTimeInSeconds")
    has_instances = "InstanceType" in resources or "InstanceCount" in resources
    if has_instances == ("InstanceGroups" in resources):
        yield "ResourceConfig needs either InstanceGroups or InstanceType with InstanceCount"
    groups = [group.get("InstanceGroupName") for group in resources.get("InstanceGroups", [])]
    if len(set(groups)) < len(groups):
        yield f"two instance groups have the same name: {groups}"
    if "KeepAlivePeriodInSeconds" in resources and ("InstanceGroups" in resources or spot):
        yield (
            "a warm pool (KeepAlivePeriodInSeconds) goes neither with instance groups nor with spot"
        )
    if (runtime := stopping.get("MaxRuntimeInSeconds", 0)) > _LONGEST_SECONDS:
        yield f"MaxRuntimeInSeconds is {runtime}; the most is {_LONGEST_SECONDS}, which is 28 days"
    if spot and (wait is None or wait < stopping.get("MaxRuntimeInSeconds", 0)):
        yield f"spot needs MaxWaitTimeInSeconds of at least MaxRuntimeInSeconds, but it is {wait}"
    if not spot and wait is not None:
        yield "MaxWaitTimeInSeconds goes with spot only"
    if spot and "CheckpointConfig" not in request:
        yield "spot without CheckpointConfig would begin from nothing after an interruption"
    is_isolated = request.get("EnableNetworkIsolation")
    if is_isolated and request.get("RemoteDebugConfig", {}).get("EnableRemoteDebug"):
        yield (
            "--remote-debug and --dashboard don't go with --isolate: Systems Manager is out of"
            " their reach"
        )
    if len(request.get("HyperParameters", {})) > 100:
        yield "more than 100 hyperparameters"
    server = request.get("Environment", {}).get("MLFLOW_TRACKING_URI", "")
    if server.startswith("arn:") and not _MLFLOW.fullmatch(server):
        yield (
            f"--mlflow {server!r} is not a managed MLflow server; its ARN contains"
            " mlflow-tracking-server/ or mlflow-app/"
        )
    if server and is_isolated:
        yield "--mlflow doesn't go with --isolate: the server is out of the containers' reach"
    yield from _channel_faults(request, groups)
    tags = [(tag.get("Key", ""), tag.get("Value", "")) for tag in request.get("Tags", [])]
    yield from _tag_faults(tags)
    if looks_like_a_secret(json.dumps(request, default=str)):
        yield "there seems to be a secret in it; requests are shown to everyone who may see the job"


def _channel_faults(request: Mapping[str, Any], groups: Sequence[str]) -> Iterator[str]:
    """If only some channels name their groups, no machine gets all channels."""
    names_by_channel = [
        channel.get("DataSource", {}).get("S3DataSource", {}).get("InstanceGroupNames", [])
        for channel in request.get("InputDataConfig", [])
    ]
    if any(names_by_channel) and not all(names_by_channel):
        yield "either all input channels name their InstanceGroupNames, or none does"
    if unknown := sorted(set().union(*names_by_channel) - set(groups)):
        yield (
            f"input channels are for the instance groups {', '.join(unknown)}, which the job"
            " doesn't have"
        )


def _tag_faults(tags: Sequence[tuple[str, str]]) -> Iterator[str]:
    keys = [key for key, _ in tags]
    for key, value in tags:
        if OWN_TAG.get(key, value) != value:
            yield f"tag {key!r} is {value!r}; it is procsnake's own, and always {OWN_TAG[key]!r}"
    if reserved := [key for key in keys if key.lower().startswith("aws:")]:
        yield f"tag {reserved[0]!r}: names that begin with aws: are AWS's own"
    if twice := [key for key in dict.fromkeys(keys) if keys.count(key) > 1]:
        yield f"tag {twice[0]!r} is given twice"


def _pair_faults(requests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if any("VpcConfig" not in request for request in requests):
        yield (
            "two jobs reach each other only in one VPC; give --subnets and --security-groups, or"
            " --stack"
        )
    if any(request.get("EnableNetworkIsolation") for request in requests):
        yield "two jobs don't go with --isolate: they find each other by S3; use one job"
    if any(request.get("EnableManagedSpotTraining") for request in requests):
        yield (
            "two jobs don't go with spot: when one is interrupted, the other fails, and nothing"
            " starts it again; use one job"
        )
