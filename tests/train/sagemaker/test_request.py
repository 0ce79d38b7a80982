"""Requests against recorded ones that were checked by eye, and against botocore's model of the
service.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from envs.common.errors import MissingDependencyError
from tests.train.sagemaker.specs import JOBS, SECURE, SINGLE, TWO_KINDS, VPC, job
from train.sagemaker import sdk
from train.sagemaker.job import requests, resumed_requests
from train.sagemaker.request_rules import RequestError, check_requests, model_faults
from train.settings.scale import Heterogeneous, Single

GOLDEN = Path(__file__).parent / "golden"
TWO_JOBS = Heterogeneous(**TWO_KINDS, mode="two-jobs")


@pytest.mark.parametrize("kind", JOBS)
def test_requests_are_the_recorded_ones(kind):
    assert requests(JOBS[kind]) == json.loads((GOLDEN / f"{kind}.json").read_text())


@pytest.mark.parametrize("kind", JOBS)
def test_requests_satisfy_the_service(kind):
    check_requests(requests(JOBS[kind]))


def test_what_the_two_jobs_of_a_run_share_and_what_not():
    first, second = requests(JOBS["two-jobs"])
    differing = {key for key in first | second if first.get(key) != second.get(key)}
    assert differing == {"TrainingJobName", "HyperParameters", "ResourceConfig", "CheckpointConfig"}
    meeting = {
        key
        for key in first["HyperParameters"]
        if first["HyperParameters"][key] != second["HyperParameters"][key]
    }
    assert meeting == {"rl_cluster_type"}


@pytest.mark.parametrize(
    ("scale", "changed", "message"),
    [
        (SINGLE, {"name": "_nope_"}, "TrainingJobName is '_nope_'"),
        (SINGLE, {"name": "x" * 64}, "TrainingJobName"),
        (SINGLE, {"role": "someone"}, "RoleArn"),
        (Single(instance="ml.c5.16xlarge"), {}, "'ml.c5.16xlarge', which SageMaker doesn't offer"),
        (
            SINGLE,
            {"spot": True, "max_seconds": 3600, "max_wait_seconds": 60},
            "at least MaxRuntimeInSeconds, but it is 60",
        ),
        (SINGLE, {"spot": True, "keep_alive_seconds": 60}, "warm pool"),
        (Heterogeneous(**TWO_KINDS), {"keep_alive_seconds": 60}, "warm pool"),
        (SINGLE, {"hyperparameters": {"experiment": "x" * 2501}}, "2501 characters; at most 2500"),
        (
            SINGLE,
            {"hyperparameters": {f"k{k}": "" for k in range(101)}},
            "101 entries; at most 100",
        ),
        (SINGLE, {"tags": {"key": "AKIA" + "Q" * 16}}, "a secret"),
        (
            SINGLE,
            {"tags": {"procsnake": "x"}},
            "tag 'procsnake' is 'x'; it is procsnake's own, and always 'training'",
        ),
        (SINGLE, {"hyperparameters": {"wandb_api_key": "1"}}, "a secret"),
        (SINGLE, {"max_seconds": 0}, "MaxRuntimeInSeconds"),
        (SINGLE, {"subnets": ("subnet-1",)}, "SecurityGroupIds"),
        (SINGLE, {"remote_debug": True, "isolate": True}, "--dashboard don't go with --isolate"),
        (SINGLE, {"dashboard": True, "isolate": True}, "--dashboard don't go with --isolate"),
        (TWO_JOBS, {}, "only in one VPC"),
        (TWO_JOBS, {**VPC, "spot": True}, "don't go with spot"),
    ],
)
def test_what_sagemaker_would_refuse_is_refused_before(scale, changed, message):
    with pytest.raises(RequestError, match=message):
        check_requests(requests(job(scale, **changed)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Nope": 1}, "Unknown parameter"),
        ({"EnableManagedSpotTraining": True}, "MaxWaitTimeInSeconds of at least"),
        (
            {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}},
            "goes with spot only",
        ),
        ({"ResourceConfig": {"VolumeSizeInGB": 5}}, "either InstanceGroups or"),
        (
            {
                "ResourceConfig": {
                    "VolumeSizeInGB": 5,
                    "InstanceGroups": [
                        {
                            "InstanceGroupName": "a",
                            "InstanceType": "ml.c5.xlarge",
                            "InstanceCount": 1,
                        }
                    ]
                    * 2,
                }
            },
            "the same name",
        ),
        ({"HyperParameters": {"k": 3}}, "Invalid type"),
    ],
)
def test_requests_that_we_never_make_are_refused_too(change, message):
    with pytest.raises(RequestError, match=message):
        check_requests([{**requests(JOBS["single"])[0], **change}])


def test_the_model_is_read_more_strictly_than_boto3_does():
    request = {**requests(JOBS["single"])[0], "TrainingJobName": "not/allowed"}
    from botocore.validate import ParamValidator

    from train.sagemaker.request_rules import _input_shape

    assert not ParamValidator().validate(request, _input_shape("CreateTrainingJob")).has_errors()
    assert any("not/allowed" in fault for fault in model_faults(request))


@pytest.mark.parametrize("kind", JOBS)
def test_a_resumed_job_is_the_old_one_with_another_name_and_token(kind):
    asked = requests(JOBS[kind])
    # What DescribeTrainingJob adds.
    described = [
        {
            **one,
            "TrainingJobStatus": "Stopped",
            "AlgorithmSpecification": {
                **one["AlgorithmSpecification"],
                "EnableSageMakerMetricsTimeSeries": True,
            },
        }
        for one in asked
    ]
    resumed = resumed_requests(described, "again-r2", "s3://b/again-r2/token/")
    check_requests(resumed)
    for old, new in zip(asked, resumed, strict=True):
        changed = {key for key in old | new if old.get(key) != new.get(key)}
        assert changed == {"TrainingJobName", "InputDataConfig", "Tags"}
        assert new.get("CheckpointConfig") == old.get("CheckpointConfig")
        assert [c["DataSource"]["S3DataSource"]["S3Uri"] for c in new["InputDataConfig"]] == [
            old["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"],
            "s3://b/again-r2/token/",
        ]


@pytest.mark.parametrize("scale", [SINGLE, Heterogeneous(**TWO_KINDS)])
def test_what_protects_a_job_is_asked_for_and_kept_when_it_resumes(scale):
    asked = requests(job(scale, **SECURE))
    check_requests(asked)
    (one,) = asked
    assert one["Environment"] == {"PROCSNAKE_JOIN_SECONDS": "60"}
    assert one["RetryStrategy"] == {"MaximumRetryAttempts": 3}
    assert one["EnableInterContainerTrafficEncryption"] is one["EnableNetworkIsolation"] is True
    assert one["OutputDataConfig"]["KmsKeyId"] == SECURE["kms_key"]
    # An instance with a disk of its own takes no key for it.
    assert ("VolumeKmsKeyId" in one["ResourceConfig"]) == (scale is SINGLE)
    (resumed,) = resumed_requests(
        asked, "r2", "s3://b/r2/token/", tags=SECURE["tags"], sizes={"scale.workers": "4"}
    )
    check_requests([resumed])
    assert {"Key": "team", "Value": "snakes"} in resumed["Tags"]
    assert resumed["HyperParameters"] == {**one["HyperParameters"], "scale.workers": "4"}
    changed = {key for key in one if one[key] != resumed[key]}
    assert changed == {"TrainingJobName", "HyperParameters", "InputDataConfig", "Tags"}


def test_a_shell_in_the_containers_is_asked_for_and_kept_when_the_job_resumes():
    asked = requests(job(SINGLE, remote_debug=True))
    check_requests(asked)
    assert asked[0]["RemoteDebugConfig"] == {"EnableRemoteDebug": True}
    assert resumed_requests(asked, "r2", "s3://b/r2/token/")[0]["RemoteDebugConfig"] == {
        "EnableRemoteDebug": True
    }


def test_a_dashboard_comes_with_the_way_to_it_beside_the_users_own_environment():
    (one,) = requests(
        job(SINGLE, dashboard=True, environment={"RAY_GRAFANA_HOST": "http://127.0.0.1:3000"})
    )
    check_requests([one])
    assert one["RemoteDebugConfig"] == {"EnableRemoteDebug": True}
    assert one["Environment"] == {
        "RAY_GRAFANA_HOST": "http://127.0.0.1:3000",
        "PROCSNAKE_DASHBOARD": "1",
    }
    (resumed,) = resumed_requests([one], "r2", "s3://b/r2/token/")
    assert resumed["Environment"] == one["Environment"]


def test_by_default_none_of_that_is_asked_for():
    assert not requests(JOBS["single"])[0].keys() & {
        "Environment",
        "RetryStrategy",
        "EnableInterContainerTrafficEncryption",
        "EnableNetworkIsolation",
        "RemoteDebugConfig",
    }


def test_either_all_channels_are_for_some_groups_or_none_is():
    (request,) = requests(JOBS["groups"])
    first, second = (
        channel["DataSource"]["S3DataSource"] for channel in request["InputDataConfig"]
    )
    first["InstanceGroupNames"] = ["learner"]
    with pytest.raises(
        RequestError, match="either all input channels name their InstanceGroupNames, or none does"
    ):
        check_requests([request])
    second["InstanceGroupNames"] = ["learner", "player"]
    with pytest.raises(RequestError, match="instance groups player, which the job doesn't have"):
        check_requests([request])
    second["InstanceGroupNames"] = ["learner", "rollout"]
    check_requests([request])


def test_nothing_secret_can_be_put_into_a_job():
    assert not {field.name for field in dataclasses.fields(JOBS["single"])} & {"token", "secret"}
    with pytest.raises(RequestError, match="a secret"):
        check_requests(requests(job(SINGLE, environment={"WANDB_API_KEY": "1"})))


def test_without_the_sdk_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sagemaker", None)
    for ask in (sdk.trainers, sdk.create_jobs):
        with pytest.raises(
            MissingDependencyError,
            match=r"sagemaker 3, which is not installed. Try: .*procsnake\[sagemaker\]",
        ):
            ask(JOBS["single"])
