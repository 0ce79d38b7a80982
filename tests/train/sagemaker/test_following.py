"""A job's statuses in the orders that SageMaker gives them, through botocore's own Stubber."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from boto3.exceptions import RetriesExceededError
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError
from botocore.stub import Stubber

from procsnake.cli.scale import job as job_command
from tests.train.sagemaker.specs import JOBS
from train.sagemaker import following
from train.sagemaker.account import Account, AWSError
from train.sagemaker.following import LOG_GROUP, follow
from train.sagemaker.job import requests
from train.sagemaker.jobs import forget_token, recent, resume, stop
from train.sagemaker.metric_lines import metric_line
from train.sagemaker.tunnel import tunnel_lines

NAME = JOBS["spot"].name
ARNS = "arn:aws:sagemaker:eu-west-1:123456789012:training-job"
BEGAN = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def account(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    return Account("eu-west-1")


def described(
    status: str, transitions: list[str], kind: str = "spot", part: int = 0, **more
) -> dict:
    """An answer of DescribeTrainingJob."""
    request = requests(JOBS[kind])[part]
    changes = [
        {"Status": name, "StartTime": BEGAN + timedelta(minutes=k), "StatusMessage": f"now {name}"}
        for k, name in enumerate(transitions)
    ]
    kept = {key: value for key, value in request.items() if key not in ("Tags",)}
    return {
        **kept,
        "TrainingJobArn": f"{ARNS}/{request['TrainingJobName']}",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://b/model.tar.gz"},
        "CreationTime": BEGAN,
        "TrainingJobStatus": status,
        "SecondaryStatus": transitions[-1],
        "SecondaryStatusTransitions": changes,
        **more,
    }


def stubbed(account, answers, name=NAME):
    stubber = Stubber(account.sagemaker)
    for answer in answers:
        stubber.add_response("describe_training_job", answer, {"TrainingJobName": name})
    stubber.activate()
    return stubber


def test_a_spot_job_that_is_interrupted_and_goes_on(account):
    steps = [
        "Starting",
        "Downloading",
        "Training",
        "Interrupted",
        "Starting",
        "Downloading",
        "Training",
        "Uploading",
        "Completed",
    ]
    answers = [described("InProgress", steps[:k]) for k in (1, 1, 3, 4, 4, 6, 7)]
    end = described("Completed", steps, BillableTimeInSeconds=600, TrainingTimeInSeconds=1800)
    said = []
    with stubbed(account, [*answers, end]) as stubber:
        (last,) = follow(account, [NAME], said.append, poll_seconds=0, log=False)
        stubber.assert_no_pending_responses()
    assert last["BillableTimeInSeconds"] == 600
    told = [line.split()[1].rstrip(":") for line in said[:-1]]
    assert told == steps
    assert "12:03:00 Interrupted: now Interrupted (spot capacity was reclaimed" in said[3]
    assert said[-1] == "Completed"


@pytest.mark.parametrize(
    ("status", "steps", "more", "last_line"),
    [
        (
            "Failed",
            ["Starting", "Training", "Failed"],
            {"FailureReason": "AlgorithmError: lost the machine algo-2"},
            "Failed: AlgorithmError: lost the machine algo-2",
        ),
        (
            "Failed",
            ["Starting", "Failed"],
            {"FailureReason": "CapacityError: none left"},
            "Failed: CapacityError: none left",
        ),
        ("Stopped", ["Starting", "Training", "Stopping", "Stopped"], {}, "Stopped"),
        ("Stopped", ["Starting", "Training", "MaxRuntimeExceeded"], {}, "Stopped"),
        ("Stopped", ["Starting", "MaxWaitTimeExceeded"], {}, "Stopped"),
    ],
)
def test_other_endings_are_told_with_their_reason(account, status, steps, more, last_line):
    said = []
    with stubbed(account, [described("InProgress", steps[:1]), described(status, steps, **more)]):
        follow(account, [NAME], said.append, poll_seconds=0, log=False)
    assert said[-1] == last_line
    assert [line.split()[1].rstrip(":") for line in said[:-1]] == steps


def test_two_jobs_are_followed_until_both_have_ended(account):
    names = [request["TrainingJobName"] for request in requests(JOBS["two-jobs"])]
    stubber = Stubber(account.sagemaker)
    for first, second in (
        ("InProgress", "InProgress"),
        ("Completed", "InProgress"),
        ("Completed", "Completed"),
    ):
        for part, (name, status) in enumerate(zip(names, (first, second), strict=True)):
            answer = described(status, ["Starting"], "two-jobs", part)
            stubber.add_response("describe_training_job", answer, {"TrainingJobName": name})
    said = []
    with stubber:
        assert len(follow(account, names, said.append, poll_seconds=0, log=False)) == 2
        stubber.assert_no_pending_responses()
    assert [line for line in said if "Completed" in line] == [f"{name} Completed" for name in names]


FAULTS = {
    "throttled": ClientError({"Error": {"Code": "ThrottlingException"}}, "DescribeTrainingJob"),
    "down": ClientError(
        {"Error": {"Code": "Any"}, "ResponseMetadata": {"HTTPStatusCode": 503}},
        "DescribeTrainingJob",
    ),
    "unreachable": EndpointConnectionError(endpoint_url="https://sagemaker"),
    "cut off": ConnectionClosedError(endpoint_url="https://sagemaker"),
    "refused": ClientError({"Error": {"Code": "ExpiredTokenException"}}, "DescribeTrainingJob"),
}


class Faulty:
    """SageMaker's client, whose answers to what is asked about a job are these; errors are
    raised.
    """

    def __init__(self, *answers):
        self.answers = list(answers)

    def describe_training_job(self, **_):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "refused"])
def test_a_network_that_fails_for_a_moment_does_not_end_the_following(account, fault):
    account.__dict__["sagemaker"] = Faulty(
        described("InProgress", ["Starting"]),
        FAULTS[fault],
        FAULTS[fault],
        described("Completed", ["Starting", "Completed"]),
    )
    said = []
    (last,) = follow(account, [NAME], said.append, poll_seconds=0, log=False)
    assert last["TrainingJobStatus"] == "Completed"
    (told,) = (line for line in said if "The job continues" in line)
    assert told.startswith(f"asking about {NAME}: ")


@pytest.mark.parametrize(("fault", "patience"), [("unreachable", -1.0), ("refused", 600.0)])
def test_when_following_ends_early_it_says_that_the_job_goes_on(
    account, monkeypatch, capsys, fault, patience
):
    monkeypatch.setattr(following, "_PATIENCE_SECONDS", patience)
    account.__dict__["sagemaker"] = Faulty(described("InProgress", ["Starting"]), FAULTS[fault])
    options = Namespace(poll_seconds=0, runs="runs")
    with pytest.raises(AWSError, match=f"asking about {NAME}"):
        job_command.follow_home(options, account, [NAME], {})
    out = capsys.readouterr().out
    assert "the job continues" in out
    assert f"job follow {NAME}" in out


class Bucket:
    """The client of a bucket with a run in it, that may be read but neither changed nor, if
    `breaks`, read to the end.
    """

    def __init__(self, breaks):
        self.breaks = breaks

    def delete_object(self, **_):
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteObject")

    def get_paginator(self, _):
        return self

    def paginate(self, *, Prefix, **_):
        return [{"Contents": [{"Key": f"{Prefix.rstrip('/')}/run/config.yaml"}]}]

    def download_file(self, bucket, key, path):
        if self.breaks:
            raise RetriesExceededError(ConnectionResetError("reset"))
        Path(path).write_text("name: x")


@pytest.mark.parametrize("breaks", [False, True])
def test_a_token_that_stays_keeps_neither_bill_nor_run_away(account, capsys, tmp_path, breaks):
    bill = {"BillableTimeInSeconds": 600, "TrainingTimeInSeconds": 1800}
    ended = described("Completed", ["Starting", "Completed"], **bill)
    account.__dict__.update(sagemaker=Faulty(ended), s3=Bucket(breaks))
    options = Namespace(poll_seconds=0, runs=str(tmp_path / "runs"))
    if breaks:
        with pytest.raises(AWSError, match="Max Retries Exceeded"):
            job_command.follow_home(options, account, [NAME], {})
    else:
        assert job_command.follow_home(options, account, [NAME], {}) == 0
        assert (tmp_path / "runs" / "run" / "config.yaml").is_file()
    told = capsys.readouterr()
    assert "600 s billed of 1800 s" in told.out
    assert "the job's token stays" in told.err
    assert (f"job download {NAME}" in told.out) is breaks


def test_metrics_are_told_as_they_are_printed_and_once(account):
    logs = Stubber(account.logs)
    stream = f"{NAME}/algo-1-1763726400"
    streams = {"logStreams": [{"logStreamName": stream}]}
    looked = {"logGroupName": LOG_GROUP, "logStreamNamePrefix": f"{NAME}/"}
    asked = {"logGroupName": LOG_GROUP, "logStreamName": stream, "startFromHead": True}

    def page(token, following, *lines):
        events = [{"message": line, "timestamp": 0, "ingestionTime": 0} for line in lines]
        logs.add_response(
            "get_log_events",
            {"events": events, "nextForwardToken": following, "nextBackwardToken": "b"},
            {**asked, **({"nextToken": token} if token else {})},
        )

    logs.add_client_error(
        "describe_log_streams", "ResourceNotFoundException", expected_params=looked
    )
    logs.add_response("describe_log_streams", streams, looked)
    page(None, "t1", "starting", metric_line({"iteration": 1, "minutes": 0.5}))
    page(
        "t1",
        "t2",
        tunnel_lines("algo-1")[0],
        metric_line({"iteration": 2, "minutes": 1.0, "episode_return_mean": -0.25}),
    )
    page("t2", "t2")
    logs.add_response("describe_log_streams", streams, looked)
    page("t2", "t2")
    said = []
    with (
        logs,
        stubbed(
            account,
            [*[described("InProgress", ["Starting"])] * 2, described("Completed", ["Starting"])],
        ),
    ):
        follow(account, [NAME], said.append, poll_seconds=0)
        logs.assert_no_pending_responses()
    metrics = [line for line in said if line.startswith("training_iteration")]
    assert metrics == [
        "training_iteration 1  minutes 0.5",
        "training_iteration 2  minutes 1  episode_return_mean -0.25",
    ]
    (way,) = (line for line in said if "aws ssm start-session" in line)
    assert way.startswith("Ray's dashboard, then at http://localhost:8265: ")


def test_stopping_asks_for_both_jobs_but_not_for_what_has_ended(account):
    first, second = (request["TrainingJobName"] for request in requests(JOBS["two-jobs"]))
    said = []
    with Stubber(account.sagemaker) as stubber:
        learner = described("InProgress", ["Training"], "two-jobs", 0)
        stubber.add_response("describe_training_job", learner, {"TrainingJobName": first})
        stubber.add_response("describe_training_job", learner, {"TrainingJobName": first})
        stubber.add_response("stop_training_job", {}, {"TrainingJobName": first})
        ended = described("Completed", ["Completed"], "two-jobs", 1)
        stubber.add_response("describe_training_job", ended, {"TrainingJobName": second})
        stop(account, first, said.append)
        stubber.assert_no_pending_responses()
    assert said == [f"{first} is asked to save and end", f"{second} has already ended"]


def test_a_job_that_runs_is_not_resumed(account):
    with (
        stubbed(account, [described("InProgress", ["Training"])] * 2),
        pytest.raises(AWSError, match="still runs"),
    ):
        resume(account, NAME, print)


def test_a_job_of_someone_else_is_none_of_ours(account):
    theirs = described("Completed", ["Completed"], InputDataConfig=[])
    with pytest.raises(AWSError, match="is not a job of procsnake"):
        forget_token(account, theirs)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("AccessDeniedException", "lack a permission"),
        ("ResourceLimitExceeded", "quota"),
        ("ExpiredTokenException", "have expired"),
        ("ValidationException", "ValidationException"),
    ],
)
def test_refusals_are_one_line_that_says_what_to_do(account, code, message):
    with Stubber(account.sagemaker) as stubber:
        stubber.add_client_error("list_training_jobs", code, "no")
        with pytest.raises(AWSError, match=message) as raised:
            recent(account)
    assert "\n" not in str(raised.value)
