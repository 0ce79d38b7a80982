"""A search by SageMaker's tuner: its request by botocore's model, and what reaches moto."""

from __future__ import annotations

import json
import shlex

import boto3
import moto
import pytest

from tests.command_line import run
from train.config import Experiment
from train.sagemaker.hyperparameters import Task

REGION = "eu-west-1"
PLACES = (
    "--role",
    "arn:aws:iam::123456789012:role/R",
    "--image",
    f"123456789012.dkr.ecr.{REGION}.amazonaws.com/p:1",
)
SEARCH = (
    *shlex.split(
        "tune-sagemaker battlesnake-ppo --instances 2*ml.c5.4xlarge --bucket snakes --region"
    ),
    REGION,
    *PLACES,
    *shlex.split(
        "--search ppo.learning_rate=1e-4..3e-3:log --search ppo.num_epochs=1..4 "
        "--trials 6 --concurrent 2 --minutes 5 --set seed=3"
    ),
)


@pytest.fixture
def aws(monkeypatch, light_source):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with moto.mock_aws():
        boto3.setup_default_session()
        boto3.client("s3", REGION).create_bucket(
            Bucket="snakes", CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        yield
    boto3.setup_default_session()


def test_a_search_is_asked_for_as_sagemaker_wants_it_and_its_trials_are_the_experiment(aws, capsys):
    words = SEARCH
    code, out, error = run(capsys, *words, "--print-request")
    assert (code, error) == (0, "")
    request = json.loads(out)
    config = request["HyperParameterTuningJobConfig"]
    definition = request["TrainingJobDefinition"]
    assert config["ResourceLimits"] == {"MaxNumberOfTrainingJobs": 6, "MaxParallelTrainingJobs": 2}
    ranges = config["ParameterRanges"]
    assert ranges["ContinuousParameterRanges"] == [
        {
            "Name": "ppo.learning_rate",
            "MinValue": "0.0001",
            "MaxValue": "0.003",
            "ScalingType": "Logarithmic",
        }
    ]
    assert ranges["IntegerParameterRanges"] == [
        {"Name": "ppo.num_epochs", "MinValue": "1", "MaxValue": "4", "ScalingType": "Linear"}
    ]
    objective = config["HyperParameterTuningJobObjective"]
    assert objective["MetricName"] in {
        one["Name"] for one in definition["AlgorithmSpecification"]["MetricDefinitions"]
    }
    assert "CheckpointConfig" not in definition
    # A trial's container gets these, and the tuner's own.
    drawn = {"ppo.learning_rate": "0.0004", "ppo.num_epochs": "2", "_tuning_objective_metric": "x"}
    task = Task.from_hyperparameters({**definition["StaticHyperParameters"], **drawn})
    trained = Experiment.load("battlesnake-ppo", task.overrides)
    assert (trained.seed, trained.settings.learning_rate, trained.settings.num_epochs) == (
        3,
        0.0004,
        2,
    )
    assert trained.budget.max_minutes == 5
    code, out, error = run(capsys, *words)
    assert (code, error) == (0, "")
    (name,) = (
        one["HyperParameterTuningJobName"]
        for one in boto3.client("sagemaker", REGION).list_hyper_parameter_tuning_jobs()[
            "HyperParameterTuningJobSummaries"
        ]
    )
    keys = [
        one["Key"]
        for one in boto3.client("s3", REGION).list_objects_v2(Bucket="snakes")["Contents"]
    ]
    assert f"created {name}" in out
    assert keys == [
        f"procsnake/inputs/{name}/code/source.tar.gz",
        f"procsnake/inputs/{name}/token/token",
    ]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--scheduler", "pbt"), "no population-based training"),
        (("--metric", "loss"), "metric of a job"),
        (("--cluster", "auto"), "unknown option '--cluster'"),
        (("--concurrent", "0"), "0 is less than 1"),
    ],
)
def test_what_the_tuner_cannot_do_is_refused(aws, capsys, more, message):
    code, _, error = run(capsys, *SEARCH, *more, "--print-request")
    assert (code, message in error) == (2, True), error
