"""`procsnake launch` and `procsnake job` against moto's AWS: what is sent, what lies in S3, what
comes home.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import boto3
import botocore.client
import botocore.loaders
import botocore.session
import moto
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from envs.common.errors import pip_install
from tests.command_line import typed
from train.cluster.sizes import sized
from train.config import Experiment
from train.runs.continuing.resizing import resized
from train.runs.folder import RunFolder
from train.runs.lock import locked
from train.sagemaker.hyperparameters import Task

REGION = "eu-west-1"
BUCKET = "snakes"
IMAGE = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/procsnake"
ROLE = "arn:aws:iam::123456789012:role/R"
PLACES = f"--region {REGION} --role {ROLE} --image {IMAGE}:1 --bucket {BUCKET}"
LAUNCH = "launch sagemaker battlesnake-ppo"
SMALL = f"{LAUNCH} --instances ml.c5.xlarge"
SINGLE = f"{LAUNCH} --instances ml.c5.4xlarge {PLACES}"
TWO_KINDS = f"{LAUNCH} --instances ml.g5.xlarge+ml.c5.xlarge --two-jobs {PLACES}"
NETWORK = "--subnets subnet-1 --security-groups sg-1"
DESCRIPTIONS = botocore.loaders.create_loader()
RUN = "battlesnake-ppo-20261121-120000"


@pytest.fixture(autouse=True)
def aws(monkeypatch, tmp_path, light_source):
    """An AWS with a bucket, in which every job leaves a run at once; yields the requests that reach
    it.
    """
    for name in [name for name in os.environ if name.startswith(("AWS_", "PROCSNAKE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    sent = []

    def created(params, **_):
        request = json.loads(params["body"])
        sent.append(request)
        if "CheckpointConfig" in request:
            _leave_a_run(request["CheckpointConfig"]["S3Uri"], tmp_path / "there")

    with moto.mock_aws():
        boto3.setup_default_session(botocore_session=_session())
        boto3.DEFAULT_SESSION.events.register("before-call.sagemaker.CreateTrainingJob", created)
        boto3.client("s3", REGION).create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        yield sent
    boto3.setup_default_session()


def _session() -> botocore.session.Session:
    """A session with the descriptions of AWS's services that another test has read: they are
    large.
    """
    session = botocore.session.get_session()
    session.register_component("data_loader", DESCRIPTIONS)
    return session


def _leave_a_run(place: str, folder: Path) -> None:
    """As the container's folder is copied: a run, and what was half-written when it was."""
    run = RunFolder.set_up(folder / RUN, Experiment.load("battlesnake-ppo"), {})
    run.append({"iteration": 1, "env_steps": 2})
    run.save_checkpoint(lambda path: (path / "weights").write_text("w"), {"iteration": 1}, keep=1)
    (folder / RUN / "checkpoints" / ".00000002.part").mkdir(exist_ok=True)
    (folder / RUN / "checkpoints" / ".00000002.part" / "weights").write_text("half")
    prefix = place.removeprefix(f"s3://{BUCKET}/")
    for path in folder.rglob("*"):
        if path.is_file():
            boto3.client("s3", REGION).upload_file(
                str(path), BUCKET, f"{prefix}/{path.relative_to(folder)}"
            )


def keys() -> list[str]:
    found = boto3.client("s3", REGION).list_objects_v2(Bucket=BUCKET)
    return [one["Key"] for one in found.get("Contents", [])]


def test_a_job_from_the_command_to_the_run_that_comes_home(aws, capsys, tmp_path):
    runs = tmp_path / "runs"
    three = f"{LAUNCH} --instances 3*ml.c5.4xlarge --spot --max-hours 1 --set seed=7 {PLACES}"
    code, out, err = typed(capsys, f"{three} --runs {runs} --poll-seconds 0")
    assert (code, err) == (0, "")
    (request,) = aws
    assert request["ResourceConfig"] == {
        "InstanceType": "ml.c5.4xlarge",
        "InstanceCount": 3,
        "VolumeSizeInGB": 50,
    }
    assert request["StoppingCondition"] == {
        "MaxRuntimeInSeconds": 3600,
        "MaxWaitTimeInSeconds": 7200,
    }
    assert request["EnableManagedSpotTraining"] is True
    assert f"created {request['TrainingJobName']}" in out

    # The source that the job carries and its hyperparameters are the experiment.
    code_key = f"procsnake/inputs/{request['TrainingJobName']}/code/source.tar.gz"
    body = boto3.client("s3", REGION).get_object(Bucket=BUCKET, Key=code_key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        (tmp_path / "experiment.yaml").write_bytes(tar.extractfile("experiment.yaml").read())
    task = Task.from_hyperparameters(request["HyperParameters"])
    there = sized(Experiment.load(tmp_path / task.experiment, task.overrides))
    assert (there.seed, there.num_env_runners) == (7, 3 * 16 - 1)

    # The run is here as it was there, and the secret is gone.
    assert f"run: {runs / RUN}" in out
    assert {
        str(path.relative_to(runs / RUN)) for path in (runs / RUN).rglob("*") if path.is_file()
    } == {
        "config.yaml",
        "config.yaml.hmac",
        "progress.csv",
        "checkpoints/00000001/weights",
        "checkpoints/00000001/counters.json",
        "checkpoints/00000001/files.json",
        "checkpoints/00000001/files.json.hmac",
    }
    folder, experiment = RunFolder.open(runs / RUN)
    assert folder.newest_checkpoint() == (runs / RUN / "checkpoints/00000001", {"iteration": 1})
    assert experiment == Experiment.load("battlesnake-ppo")
    assert not [key for key in keys() if "/token/" in key]


def test_a_job_finds_its_token_and_nobody_sees_it(aws, capsys):
    assert typed(capsys, f"{SMALL} {PLACES} --no-follow")[0] == 0
    (request,) = aws
    (channel,) = (one for one in request["InputDataConfig"] if one["ChannelName"] == "token")
    prefix = channel["DataSource"]["S3DataSource"]["S3Uri"].removeprefix(f"s3://{BUCKET}/")
    (key,) = (key for key in keys() if key.startswith(prefix))
    stored = boto3.client("s3", REGION).get_object(Bucket=BUCKET, Key=key)
    token = stored["Body"].read().decode()
    assert re.fullmatch("[0-9a-f]{64}", token)
    assert stored["ServerSideEncryption"] == "AES256"
    assert key == f"{prefix}token"
    assert token not in json.dumps(request)


TWO_JOBS = (
    "launch sagemaker battlesnake-apex --instances ml.g5.2xlarge+2*ml.c5.9xlarge --two-jobs"
    f" {PLACES} {NETWORK}"
)


def _second_job_ends_by(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, *, stops: bool
) -> list[str]:
    """The jobs that are stopped from now on. Creating a second job raises `error`; without `stops`,
    stopping fails, too.
    """
    call = botocore.client.BaseClient._make_api_call
    stopped = []

    def answer(self, operation, arguments):
        if operation == "CreateTrainingJob" and arguments["TrainingJobName"].endswith("-rollout"):
            raise error
        if operation == "StopTrainingJob":
            stopped.append(arguments["TrainingJobName"])
            if not stops:
                raise ClientError(
                    {"Error": {"Code": "AccessDeniedException", "Message": "may not stop"}},
                    operation,
                )
            return {}
        return call(self, operation, arguments)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", answer)
    return stopped


@pytest.mark.parametrize("stops", [True, False])
def test_of_two_jobs_none_stays_alone_and_the_first_reason_is_told(aws, capsys, monkeypatch, stops):
    refusal = ClientError(
        {"Error": {"Code": "ResourceLimitExceeded", "Message": "no more"}}, "CreateTrainingJob"
    )
    stopped = _second_job_ends_by(refusal, monkeypatch, stops=stops)
    code, out, error = typed(capsys, TWO_JOBS)
    assert (code, "ResourceLimitExceeded: no more" in error, "Traceback" in error) == (
        2,
        True,
        False,
    )
    assert stopped == [aws[0]["TrainingJobName"]]
    assert (f"procsnake job stop {stopped[0]}" in out) is not stops


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), EndpointConnectionError(endpoint_url="https://sagemaker")]
)
def test_two_jobs_of_which_the_second_may_have_been_created_are_both_stopped(
    aws, capsys, monkeypatch, error
):
    stopped = _second_job_ends_by(error, monkeypatch, stops=True)
    assert typed(capsys, TWO_JOBS)[0] == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert stopped == [aws[0]["TrainingJobName"], f"{aws[0]['TrainingJobName']}-rollout"]


def test_printing_and_trying_send_nothing(aws, capsys):
    code, out, _ = typed(capsys, f"{TWO_JOBS} --print-request")
    printed = json.loads(out)
    assert code == 0
    assert [one["ResourceConfig"]["InstanceType"] for one in printed] == [
        "ml.g5.2xlarge",
        "ml.c5.9xlarge",
    ]
    code, out, _ = typed(capsys, f"{TWO_JOBS} --dry-run")
    assert (code, out.count("would create")) == (0, 2)
    code, out, _ = typed(capsys, f"{TWO_JOBS} --explain")
    assert (code, "72 = 36 CPUs × 2" in out) == (0, True)
    assert (aws, keys()) == ([], [])


def test_a_limit_of_money_becomes_the_stopping_condition_and_waste_is_told_before_it_is_paid_for(
    aws, capsys
):
    limited = f"{SINGLE} --price ml.c5.4xlarge=0.5 --max-cost 2"
    code, out, _ = typed(capsys, f"{limited} --no-follow")
    assert (code, aws[0]["StoppingCondition"]) == (0, {"MaxRuntimeInSeconds": 4 * 3600})
    assert out.index("warning: 15 env runners play") < out.index("created ")


def test_the_explanation_tells_time_money_and_quotas(aws, capsys):
    price = "--price ml.c5.4xlarge=0.5"
    explain = f"{SINGLE} --explain --spot --minutes 30 {price} --max-hours 2"
    code, out, _ = typed(capsys, explain)
    assert (code, aws) == (0, [])
    assert "about 30 minutes of training: the experiment's budget.max_minutes" in out
    assert (
        "about $0.25 for the training; $1.00 at most, if it runs until it is stopped after 2 hours"
        in out
    )
    assert "1 × 'ml.c5.4xlarge for spot training job usage'" in out
    told = json.loads(typed(capsys, f"{explain} --json")[1])
    assert (told["estimate"]["cost"], told["num_env_runners"]) == (0.25, 15)
    assert told["estimate"]["quotas"] == {"ml.c5.4xlarge for spot training job usage": 1}
    assert "15 env runners" in told["warnings"][0]


def test_what_is_printed_is_what_is_sent(aws, capsys):
    printed = json.loads(typed(capsys, f"{TWO_JOBS} --print-request")[1])
    assert typed(capsys, f"{TWO_JOBS} --no-follow")[0] == 0
    first, second = (
        re.sub(r"\d{8}-\d{6}", "TIME", json.dumps(requests, sort_keys=True))
        for requests in (printed, aws)
    )
    assert first == second


def test_a_job_is_resumed_listed_and_downloaded(aws, capsys, tmp_path):
    assert typed(capsys, f"{SMALL} {PLACES} --no-follow")[0] == 0
    name = aws[0]["TrainingJobName"]
    runs = f"--region {REGION} --runs {tmp_path / 'runs'}"
    code, out, _ = typed(capsys, f"job resume {name} {runs} --poll-seconds 0")
    assert (code, f"created {name}-r2" in out) == (0, True)
    assert aws[1]["CheckpointConfig"] == aws[0]["CheckpointConfig"]
    assert aws[1]["HyperParameters"] == aws[0]["HyperParameters"]
    assert typed(capsys, f"job resume {name}-r2 {runs} --poll-seconds 0")[0] == 0
    assert aws[2]["TrainingJobName"] == f"{name}-r3"
    tokens = {
        one["DataSource"]["S3DataSource"]["S3Uri"]
        for sent in aws
        for one in sent["InputDataConfig"]
        if one["ChannelName"] == "token"
    }
    assert len(tokens) == 3
    listed = typed(capsys, f"job list --region {REGION}")[1]
    assert {line.split()[0] for line in listed.splitlines()[1:]} == {
        name,
        f"{name}-r2",
        f"{name}-r3",
    }
    in_json = json.loads(typed(capsys, f"job list --region {REGION} --json")[1])
    assert [row["name"] for row in in_json] == [line.split()[0] for line in listed.splitlines()[1:]]
    assert typed(capsys, f"job stop {name} --region {REGION} --json")[0] == 2
    code, out, _ = typed(capsys, f"job download {name} {runs}")
    assert (code, out) == (0, f"run: {tmp_path / 'runs' / RUN}\n")


def test_a_run_that_went_on_here_is_not_replaced(aws, capsys, tmp_path):
    assert typed(capsys, f"{SINGLE} --no-follow")[0] == 0
    runs = tmp_path / "runs"
    download = f"job download {aws[0]['TrainingJobName']} --region {REGION} --runs"
    here = f"{download} {runs}"
    assert typed(capsys, here)[0] == typed(capsys, here)[0] == 0
    folder = RunFolder(runs / RUN)
    with locked(folder.path):
        code, _, error = typed(capsys, here)
    assert (code, "is being written by process" in error, "--runs OTHER" in error) == (
        2,
        True,
        True,
    )
    newer = folder.save_checkpoint(
        lambda path: (path / "weights").write_text("here"), {"iteration": 2}, keep=3
    )
    checkpoints = next(key for key in keys() if "/checkpoints/00000001/" in key).partition(
        "00000001"
    )[0]
    boto3.client("s3", REGION).put_object(
        Bucket=BUCKET, Key=f"{checkpoints}best-00000001/weights", Body=b"w"
    )
    code, _, error = typed(capsys, here)
    assert (code, "--runs OTHER" in error) == (2, True)
    assert "continued here until checkpoint 00000002, the job until 00000001" in error
    assert (newer / "weights").read_text() == "here"
    assert typed(capsys, f"{download} {tmp_path / 'other'}")[0] == 0


SERVER = f"arn:aws:sagemaker:{REGION}:123456789012:mlflow-tracking-server/snakes"


def test_a_job_is_a_trial_of_an_experiment_and_logs_to_the_managed_server(aws, capsys, monkeypatch):
    """Twice, because the experiment is there the second time. The requests were checked by
    botocore's model.
    """
    for number in (1, 2):
        monkeypatch.setattr(
            "train.sagemaker.jobs.job_name", lambda _, number=number: f"procsnake-{number}"
        )
        trial = f"{SINGLE} --experiment my-snakes --mlflow {SERVER}"
        code, _, error = typed(capsys, f"{trial} --no-follow")
        assert (code, error) == (0, "")
        assert aws[-1]["ExperimentConfig"] == {
            "ExperimentName": "my-snakes",
            "TrialName": f"procsnake-{number}",
            "TrialComponentDisplayName": f"procsnake-{number}",
        }
        assert aws[-1]["Environment"]["MLFLOW_TRACKING_URI"] == SERVER
        assert aws[-1]["Environment"]["PROCSNAKE_TRACKERS"] == "mlflow"
    trials = boto3.client("sagemaker", REGION).list_trials(ExperimentName="my-snakes")[
        "TrialSummaries"
    ]
    assert {one["TrialName"] for one in trials} == {"procsnake-1", "procsnake-2"}


def test_a_job_whose_source_has_expired_is_not_started_in_vain(aws, capsys):
    assert typed(capsys, f"{SINGLE} --no-follow")[0] == 0
    (key,) = (key for key in keys() if key.endswith("source.tar.gz"))
    boto3.client("s3", REGION).delete_object(Bucket=BUCKET, Key=key)
    code, _, error = typed(capsys, f"job resume {aws[0]['TrainingJobName']} --region {REGION}")
    assert (code, len(aws)) == (2, 1)
    assert "no longer at s3://snakes/procsnake/inputs/" in error
    assert f"procsnake job download {aws[0]['TrainingJobName']}" in error


SECURE = (
    "--encrypt --isolate --retries 3 --kms-key alias/snakes --env PROCSNAKE_JOIN_SECONDS=60"
    " --tag team=snakes"
)


def test_a_resumed_job_keeps_its_key_and_the_users_tags(aws, capsys, tmp_path):
    assert typed(capsys, f"{SINGLE} {SECURE} --no-follow")[0] == 0
    name = aws[0]["TrainingJobName"]
    there = boto3.client("s3", REGION)
    assert {
        there.head_object(Bucket=BUCKET, Key=key).get("SSEKMSKeyId")
        for key in keys()
        if "/checkpoints/" not in key
    } == {"alias/snakes"}
    resume = f"job resume {name} --region {REGION} --runs {tmp_path}"
    code, *_ = typed(capsys, f"{resume} --poll-seconds 0")
    assert (code, {"Key": "team", "Value": "snakes"} in aws[1]["Tags"]) == (0, True)
    assert aws[1]["OutputDataConfig"] == aws[0]["OutputDataConfig"]
    assert aws[1]["OutputDataConfig"]["KmsKeyId"] == "alias/snakes"


def test_a_job_goes_on_with_another_number_of_env_runners_and_with_nothing_else(
    aws, capsys, tmp_path
):
    assert typed(capsys, f"{SINGLE} --no-follow")[0] == 0
    name = aws[0]["TrainingJobName"]
    rest = f"--region {REGION} --runs {tmp_path} --poll-seconds 0"
    there = sized(
        Experiment.load("battlesnake-ppo", ["scale={kind: single, instance: ml.c5.4xlarge}"])
    )
    config = RunFolder.set_up(tmp_path / "newest", there, {}).path / "config.yaml"
    key = f"procsnake/{name}/checkpoints/battlesnake-ppo-20991231-235959/config.yaml"
    boto3.client("s3", REGION).upload_file(str(config), BUCKET, key)
    for override, reason in (
        ("seed=2", "'seed=2' can't change: a job keeps its experiment and instances"),
        ("scale.instance=ml.c5.xlarge", "its experiment and instances"),
        ("scale.workers=0", "scale.workers is 0; it must be at least 1"),
        ("scale.workers=100", "100 env runners a batch would have 25,600 game steps"),
    ):
        code, _, error = typed(capsys, f"job resume {name} --set {override} {rest}")
        assert (code, reason in error, len(aws)) == (2, True, 1), error
    assert typed(capsys, f"job stop {name} --set scale.workers=4 --region {REGION}")[0] == 2
    assert typed(capsys, f"job resume {name} --set scale.workers=4 {rest}")[0] == 0
    assert aws[1]["HyperParameters"] == {**aws[0]["HyperParameters"], "scale.workers": "4"}
    # What the machine that leads makes of it.
    task = Task.from_hyperparameters(aws[1]["HyperParameters"])
    sizes = [override for override in task.overrides if override.startswith("scale.")]
    assert sized(resized(there, sizes)).num_env_runners == 4


def test_places_come_from_the_stack(aws, capsys):
    stack = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "of-the-stack"}}
        },
        "Outputs": {
            "Bucket": {"Value": {"Ref": "Bucket"}},
            "TrainingRole": {"Value": "arn:aws:iam::123456789012:role/Stack"},
            "Image": {"Value": f"{IMAGE}:latest"},
            "Subnets": {"Value": "subnet-1,subnet-2"},
            "SecurityGroups": {"Value": "sg-1"},
        },
    }
    boto3.client("cloudformation", REGION).create_stack(
        StackName="snakes", TemplateBody=json.dumps(stack)
    )
    launch = f"{SMALL} --region {REGION} --stack snakes"
    request = json.loads(typed(capsys, f"{launch} --print-request")[1])
    assert request["RoleArn"].endswith("role/Stack")
    assert request["AlgorithmSpecification"]["TrainingImage"] == f"{IMAGE}:latest"
    assert request["VpcConfig"] == {
        "Subnets": ["subnet-1", "subnet-2"],
        "SecurityGroupIds": ["sg-1"],
    }
    assert request["OutputDataConfig"]["S3OutputPath"].startswith("s3://of-the-stack/")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{LAUNCH} {PLACES}", "name instances"),
        (f"{LAUNCH} --instances ml.c55.xlarge {PLACES}", "Did you mean"),
        (f"{SMALL} --region {REGION}", "a job needs role and image and bucket"),
        (SMALL, "no AWS region is set"),
        (f"{LAUNCH} --instances ml.c5.16xlarge {PLACES}", "SageMaker doesn't offer"),
        (f"{SMALL} --two-jobs {PLACES}", "two jobs need two kinds"),
        (f"{LAUNCH} --two-jobs {PLACES}", "--two-jobs needs --instances"),
        (TWO_KINDS, "only in one VPC"),
        (f"{SMALL} --tag x {PLACES}", "KEY=VALUE"),
        (f"{SMALL} --price x {PLACES}", "INSTANCE=DOLLARS"),
        (f"{SINGLE} --tag a=1 --tag a=2", "tag 'a' is given twice"),
        (f"{SINGLE} --tag aws:a=1", "AWS's own"),
        (f"{SINGLE} --env x", "variable 'x' is not of the form KEY=VALUE"),
        (f"{SINGLE} --env 1x=2", "of the form [a-zA-Z_]"),
        (f"{SINGLE} --env WANDB_API_KEY=2", "a secret"),
        (f"{SINGLE} --retries 31", "at most 30"),
        (f"{SINGLE} --kms-key 'not a key'", "KmsKeyId is 'not a key'"),
        (f"{SINGLE} --bucket s3://snakes", "is not the name of a bucket"),
        (f"{SINGLE} --image procsnake:latest", "is not in ECR"),
        (
            f"{SINGLE} --image {IMAGE.replace(REGION, 'us-east-1')}",
            "is in us-east-1, but the job runs in eu-west-1",
        ),
        (f"{TWO_KINDS} --isolate {NETWORK}", "find each other by S3"),
        (f"{SINGLE} --max-hours nan", "nan is not a number"),
        (f"{SINGLE} --max-hours -1", "-1 is not a number"),
        (f"{SINGLE} --max-hours 0", "0 is not greater than 0"),
        (f"{SINGLE} --max-hours 1e306", "argument --max-hours: 1e306 is more than 1000000000"),
        (
            f"job follow procsnake-none --region {REGION} --poll-seconds 1e300",
            "1e300 is more than 1000000000",
        ),
        (f"{SINGLE} --max-hours 700", "the most is 2419200, which is 28 days"),
        (f"{SINGLE} --max-wait-hours inf", "inf is not a number"),
        (f"{SINGLE} --max-wait-hours 5", "--max-wait-hours 5 needs --spot"),
        (f"{SINGLE} --max-wait-hours 5 --explain", "--max-wait-hours 5 needs --spot"),
        (f"{SINGLE} --max-cost 5", "add --price ml.c5.4xlarge=DOLLARS"),
        (f"{SINGLE} --max-cost 0.01 --price ml.c5.4xlarge=0.5", "raise --max-cost"),
        (f"{SINGLE} --price ml.c5.4xlarge=nan", "is not an amount of money"),
        (f"job follow procsnake-none --region {REGION} --poll-seconds nan", "nan is not a number"),
        (f"{SMALL} --set ppo.gama=1 {PLACES}", "Did you mean 'ppo.gamma'"),
        (f"{SMALL} --set network.name=mpl {PLACES}", "Did you mean 'mlp'"),
        (f"{SMALL} {PLACES} --bucket elsewhere", "NoSuchBucket"),
        (f"job follow procsnake-none --region {REGION}", "asking about procsnake-none"),
        (f"job stop --region {REGION}", "which job?"),
        ("job lst", "Did you mean 'list'"),
        (f"{SINGLE} --experiment 'my snakes'", "ExperimentConfig.ExperimentName is 'my snakes'"),
        (f"{SINGLE} --mlflow arn:aws:s3:::snakes", "is not a managed MLflow server"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_started(aws, capsys, line, message):
    code, _, error = typed(capsys, line)
    assert code == 2
    assert message in error.splitlines()[-1]
    assert "Traceback" not in error
    assert aws == []


def test_a_job_that_ended_before_it_trained_says_so(aws, capsys, tmp_path):
    boto3.DEFAULT_SESSION.events.unregister("before-call.sagemaker.CreateTrainingJob")
    assert typed(capsys, f"{SMALL} {PLACES} --no-follow")[0] == 0
    (bucket_key,) = (key for key in keys() if key.endswith("config.yaml"))
    name = bucket_key.split("/")[1]
    for key in keys():
        if "/checkpoints/" in key:
            boto3.client("s3", REGION).delete_object(Bucket=BUCKET, Key=key)
    code, _, error = typed(capsys, f"job download {name} --region {REGION} --runs {tmp_path}")
    assert (code, "ended before it began to train" in error) == (2, True)


@pytest.mark.parametrize(
    ("file", "profile", "message", "line"),
    [
        ("", "nope", "(nope) could not be found", "job list"),
        ("[default", "default", "parse", f"job list --region {REGION}"),
        ("", "nope", "(nope) could not be found", f"{SINGLE} --print-request"),
    ],
)
def test_settings_of_aws_that_cannot_be_read_are_told(tmp_path, file, profile, message, line):
    """In a process of its own: sessions are kept."""
    (tmp_path / "config").write_text(file)
    settings = {
        "AWS_PROFILE": profile,
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "PYTHONPATH": os.getcwd(),
    }
    command = [sys.executable, "-m", "procsnake", *shlex.split(line)]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert message in done.stderr


def test_without_boto3_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    code, _, error = typed(capsys, f"{SMALL} {PLACES}")
    assert (code, pip_install("procsnake[aws]") in error) == (2, True)
