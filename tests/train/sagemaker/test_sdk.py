"""What AWS's SDK sends for our jobs, against the recorded requests. The code of docs/sagemaker.md
is run, too.

Needs the extra [sagemaker], which `make outside-sdk` installs into an environment of its own.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import re
import shutil
import tarfile
import textwrap
from importlib.util import find_spec
from pathlib import Path

import botocore.client
import botocore.loaders
import pytest

if find_spec("sagemaker") is None:
    pytest.skip("the extra [sagemaker] is not installed", allow_module_level=True)

import boto3
import jupytext
import moto
from botocore.exceptions import ClientError

from agents.bundle import BundleError
from envs.common.errors import ConfigError
from tests.agents.bundles import make_bundle
from tests.train.sagemaker.specs import JOBS, SECURE, SINGLE, job
from train.sagemaker import sdk
from train.sagemaker.account import AWSError
from train.sagemaker.job import requests
from train.sagemaker.request_rules import RequestError

# The SDK's own, and those of what it brings.
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parent / "golden"
PAGE = (ROOT / "docs" / "sagemaker.md").read_text(encoding="utf-8")
TITLED = re.compile(r'^```python title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FILES = {title: textwrap.dedent(text) for title, text in TITLED.findall(PAGE)}
REGION = "eu-west-1"
BUCKET = "procsnake-bucket"
DESCRIPTIONS = botocore.loaders.create_loader()
ROLE = "arn:aws:iam::123456789012:role/procsnake-TrainingRole"


@pytest.fixture
def calls(monkeypatch):
    """Every call of AWS that the test makes, as (operation, arguments), in an account with our
    bucket; no region is set.
    """
    for name in [
        name for name in os.environ if name.startswith(("AWS_", "SAGEMAKER_", "PROCSNAKE_"))
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = []
    call = botocore.client.BaseClient._make_api_call

    def recorded(self, operation, arguments):
        made.append((operation, arguments))
        # AWS leaves out what a resource doesn't have, where moto answers with an empty structure,
        # which the SDK refuses.
        return {
            name: value for name, value in call(self, operation, arguments).items() if value != {}
        }

    # The descriptions of AWS's services are large: all clients read the same.
    monkeypatch.setattr(botocore.loaders, "create_loader", lambda *_: DESCRIPTIONS)
    with moto.mock_aws():
        s3 = boto3.client("s3", REGION)
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", recorded)
        yield made


def sent(calls, operation):
    return [arguments for name, arguments in calls if name == operation]


def recorded(kind):
    return json.loads((GOLDEN / f"{kind}.json").read_text())


def test_the_environment_has_what_its_constraints_say():
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints-sagemaker.txt").read_text().splitlines()
        if line[0] != "#"
    )
    assert {name: importlib.metadata.version(name) for name in pins} == pins


@pytest.mark.parametrize("kind", JOBS)
def test_a_trainer_sends_our_request_field_by_field(calls, kind):
    for trainer in sdk.trainers(JOBS[kind]):
        trainer.train(wait=False, logs=False)
    created = sent(calls, "CreateTrainingJob")
    for request, ours in zip(created, recorded(kind), strict=True):
        # The SDK's names end in the second; and it says what SageMaker does anyway.
        stamped = request.pop("TrainingJobName")
        assert re.fullmatch(rf"{ours.pop('TrainingJobName')}-\d+", stamped)
        assert request["OutputDataConfig"].pop("CompressionType") == "GZIP"
        assert request == ours
    # No bucket was made, no role was asked about, nobody was told.
    assert {operation for operation, _ in calls} == {"CreateTrainingJob", "DescribeTrainingJob"}


@pytest.mark.parametrize("kind", JOBS)
def test_exact_names_are_kept_where_they_are_asked_for(calls, kind):
    created = sdk.create_jobs(JOBS[kind])
    assert sent(calls, "CreateTrainingJob") == recorded(kind)
    assert [one.training_job_name for one in created] == [
        one["TrainingJobName"] for one in recorded(kind)
    ]
    assert {operation for operation, _ in calls} == {"CreateTrainingJob", "DescribeTrainingJob"}


@pytest.mark.parametrize("more", [SECURE, {"remote_debug": True}], ids=["protected", "debugged"])
def test_whatever_else_is_asked_for_is_sent_too(calls, more):
    (ours,) = requests(job(SINGLE, **more))
    (trainer,) = sdk.trainers(job(SINGLE, **more))
    trainer.train(wait=False, logs=False)
    (request,) = sent(calls, "CreateTrainingJob")
    changed = {key for key in request | ours if request.get(key) != ours.get(key)}
    assert changed == {"TrainingJobName", "OutputDataConfig"}
    assert request["OutputDataConfig"] == {**ours["OutputDataConfig"], "CompressionType": "GZIP"}


def test_our_refusals_come_first_and_the_environment_stays_what_it_was(calls):
    before = dict(os.environ)
    for ask in (sdk.trainers, sdk.create_jobs):
        with pytest.raises(RequestError, match="MaxRuntimeInSeconds"):
            ask(job(SINGLE, max_seconds=0))
    sdk.trainers(JOBS["single"])
    assert (dict(os.environ), calls) == (before, [])


@pytest.mark.parametrize("fails", ["CreateTrainingJob", "DescribeTrainingJob"])
def test_of_two_jobs_that_cannot_both_be_had_none_runs(calls, monkeypatch, fails):
    """The SDK asks about a job as soon as it has created it."""
    first, second = (one["TrainingJobName"] for one in recorded("two-jobs"))
    call = botocore.client.BaseClient._make_api_call
    stopped = []

    def refusing(self, operation, arguments):
        if (operation, arguments["TrainingJobName"]) == (fails, second):
            raise ClientError(
                {"Error": {"Code": "ResourceLimitExceeded", "Message": "no more"}}, operation
            )
        if operation == "StopTrainingJob":  # moto answers with an error
            return stopped.append(arguments["TrainingJobName"]) or {}
        return call(self, operation, arguments)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", refusing)
    with pytest.raises(AWSError, match=f"creating {second}: ResourceLimitExceeded: no more"):
        sdk.create_jobs(JOBS["two-jobs"])
    assert stopped == ([first] if fails == "CreateTrainingJob" else [first, second])


ENDPOINT = {
    "name": "snake",
    "image": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/snake:1",
    "role": ROLE,
    "bucket": BUCKET,
    "region": REGION,
}

INSTANCE = "ml.c5.large"  # moto knows no newer ones


def test_a_bundle_becomes_an_endpoint_of_our_image(calls, tmp_path):
    bundle = make_bundle(tmp_path / "bundle")
    endpoint = sdk.deploy(bundle, **ENDPOINT, instance=INSTANCE, wait=False)
    assert endpoint.endpoint_name == "snake"
    key = "procsnake/endpoints/snake/model.tar.gz"
    (model,) = sent(calls, "CreateModel")
    assert model["ExecutionRoleArn"] == ROLE
    container = model["PrimaryContainer"]
    assert {name: value for name, value in container.items() if value} == {
        "Image": ENDPOINT["image"],
        "ModelDataUrl": f"s3://{BUCKET}/{key}",
    }
    (config,) = sent(calls, "CreateEndpointConfig")
    (variant,) = config["ProductionVariants"]
    assert {variant[name] for name in ("ModelName", "InstanceType", "InitialInstanceCount")} == {
        "snake",
        INSTANCE,
        1,
    }
    (created,) = sent(calls, "CreateEndpoint")
    assert (created["EndpointName"], created["EndpointConfigName"]) == (
        "snake",
        config["EndpointConfigName"],
    )
    # The container unpacks the bundle's files at the top of its folder.
    stored = boto3.client("s3", REGION).get_object(Bucket=BUCKET, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(stored)) as tar:
        unpacked = {member.name: tar.extractfile(member).read() for member in tar}
    assert unpacked == {path.name: path.read_bytes() for path in bundle.iterdir()}
    assert not {operation for operation, _ in calls} & {
        "CreateBucket",
        "SimulatePrincipalPolicy",
        "GetRole",
    }


def test_what_is_no_bundle_is_refused_before_anything_is_sent(calls, tmp_path):
    with pytest.raises(BundleError, match="no policy bundle"):
        sdk.deploy(tmp_path / "nothing", **ENDPOINT)
    with pytest.raises(ConfigError, match="is a zip"):
        sdk.deploy(
            shutil.make_archive(tmp_path / "zipped", "zip", make_bundle(tmp_path / "bundle")),
            **ENDPOINT,
        )
    assert calls == []


@pytest.fixture
def page(calls, monkeypatch):
    """Runs code of the page by its titles, for a reader who has a stack and a region; returns what
    it defines.
    """
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    stack = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "of-the-stack"}}
        },
        "Outputs": {
            "Bucket": {"Value": {"Ref": "Bucket"}},
            "TrainingRole": {"Value": ROLE},
            "Image": {
                "Value": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/procsnake-training:latest"
            },
        },
    }
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "sagemaker.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    boto3.client("iam", REGION).create_role(
        RoleName="my-pipelines", AssumeRolePolicyDocument=json.dumps(trust)
    )
    boto3.client("cloudformation", REGION).create_stack(
        StackName="procsnake", TemplateBody=json.dumps(stack)
    )
    calls.clear()

    def run(*titles):
        names = {}
        for title in titles:
            exec(compile(FILES[title], title, "exec"), names)
        return names

    return run


def test_the_pages_trainer_trains_what_the_page_uploads(page, calls):
    ours = page("job.py", "trainer.py")["job"]
    (request,) = sent(calls, "CreateTrainingJob")
    (expected,) = requests(ours)
    changed = {key for key in request | expected if request.get(key) != expected.get(key)}
    assert changed == {"TrainingJobName", "OutputDataConfig"}
    keys = {arguments["Key"] for arguments in sent(calls, "PutObject")}
    assert keys == {f"{ours.inputs_key}/code/source.tar.gz", f"{ours.inputs_key}/token/token"}
    assert not {operation for operation, _ in calls} & {
        "CreateBucket",
        "SimulatePrincipalPolicy",
        "GetRole",
    }


def test_the_pages_tuner_searches_without_shared_checkpoints(page, calls):
    ours = page("job.py", "tuner.py")["job"]
    (request,) = sent(calls, "CreateHyperParameterTuningJob")
    (expected,), definition = requests(ours), request["TrainingJobDefinition"]
    assert "CheckpointConfig" not in definition
    assert definition["StaticHyperParameters"] == expected["HyperParameters"]
    assert definition["AlgorithmSpecification"] == expected["AlgorithmSpecification"]
    for same in ("RoleArn", "InputDataConfig", "StoppingCondition", "ResourceConfig"):
        assert definition[same] == expected[same]
    objective = request["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]
    assert objective == {"Type": "Maximize", "MetricName": "episode_return_mean"}
    assert objective["MetricName"] in {
        one["Name"] for one in definition["AlgorithmSpecification"]["MetricDefinitions"]
    }


def test_the_pages_pipeline_keeps_executions_apart(page, calls):
    ours = page("job.py", "pipeline.py")["job"]
    (request,) = sent(calls, "CreatePipeline")
    (step,) = json.loads(request["PipelineDefinition"])["Steps"]
    arguments, (expected,) = step["Arguments"], requests(ours)
    changed = {key for key in arguments | expected if arguments.get(key) != expected.get(key)}
    assert changed == {"TrainingJobName", "OutputDataConfig", "CheckpointConfig"}
    place = {
        "Std:Join": {
            "On": "/",
            "Values": [f"{ours.place}/checkpoints", {"Get": "Execution.PipelineExecutionId"}],
        }
    }
    assert arguments["CheckpointConfig"] == {"S3Uri": place, "LocalPath": "/opt/ml/checkpoints"}


def test_the_pages_endpoint_is_deployed(page, calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_bundle(tmp_path / "runs" / "my-run" / "bundle")
    page("job.py", "endpoint.py")
    assert len(sent(calls, "CreateEndpoint")) == 1


def test_the_notebooks_trainer_is_made_of_its_job(calls, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = [
        cell.source
        for cell in jupytext.read(ROOT / "notebooks" / "5_scaling_out.py").cells
        if cell.cell_type == "code"
    ]
    marks = ["train.sagemaker", "PROCSNAKE_CPU_INSTANCE", "SCALES = ", "ROLE, IMAGE = "]
    ours = [cell for cell in cells if any(mark in cell for mark in marks)]
    names = {}
    exec("\n".join(ours), names)
    assert names["trainer"].hyperparameters == requests(names["job"])[0]["HyperParameters"]
    assert names["trainer"].compute.instance_count == 3
    assert json.loads(
        re.search(r"^\{$.*^\}$", capsys.readouterr().out, re.DOTALL | re.MULTILINE)[0]
    )["ResourceConfig"] == {
        "InstanceType": "ml.c5.4xlarge",
        "InstanceCount": 3,
        "VolumeSizeInGB": 50,
    }
    assert calls == []
