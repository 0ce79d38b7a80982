"""Bills, against sums done by hand and AWS's formula for the saving of spot."""

from __future__ import annotations

import pytest

from envs.common.errors import ConfigError
from train.sagemaker.costs.bill import Bill, bill_lines, parse_prices

SPOT = {
    "TrainingJobName": "one",
    "EnableManagedSpotTraining": True,
    "BillableTimeInSeconds": 900,
    "TrainingTimeInSeconds": 3600,
    "ResourceConfig": {"InstanceType": "ml.c5.4xlarge", "InstanceCount": 3},
}
GROUPS = {
    "TrainingJobName": "two",
    "BillableTimeInSeconds": 1800,
    "TrainingTimeInSeconds": 1800,
    "ResourceConfig": {
        "InstanceGroups": [
            {"InstanceGroupName": "learner", "InstanceType": "ml.g5.2xlarge", "InstanceCount": 1},
            {"InstanceGroupName": "rollout", "InstanceType": "ml.c5.9xlarge", "InstanceCount": 2},
        ]
    },
}


def test_spot_saves_what_aws_says_it_saves():
    bill = Bill.of(SPOT)
    assert bill.saving == 0.75
    # A quarter of an hour on three instances.
    assert bill.cost({"ml.c5.4xlarge": 0.8}) == pytest.approx(3 * 0.25 * 0.8)


def test_each_group_is_billed_at_its_own_price():
    assert Bill.of(GROUPS).cost({"ml.g5.2xlarge": 1.5, "ml.c5.9xlarge": 2.0}) == pytest.approx(
        0.5 * 1.5 + 0.5 * 2 * 2.0
    )


def test_without_prices_no_money_is_made_up():
    assert Bill.of(GROUPS).cost({"ml.g5.2xlarge": 1.5}) is None
    text = "\n".join(bill_lines([SPOT], {}))
    assert "900 s billed of 3600 s, 75% saved by spot" in text
    assert "--price" in text
    assert "$" not in text.replace("INSTANCE=DOLLARS", "")


def test_several_jobs_are_summed():
    lines = bill_lines(
        [SPOT, GROUPS], parse_prices(["ml.c5.4xlarge=0.8", "ml.g5.2xlarge=1.5", "ml.c5.9xlarge=2"])
    )
    assert lines[0].endswith("$0.60")
    assert lines[1].endswith("$2.75")
    assert lines[2] == "together $3.35"


def test_a_job_that_has_not_been_billed_has_no_line():
    assert bill_lines([{"TrainingJobName": "x", "ResourceConfig": {}}], {}) == []


@pytest.mark.parametrize(
    "text",
    [
        "ml.c5.xlarge",
        "ml.c5.xlarge=cheap",
        "=",
        "",
        "ml.c5.xlarge=nan",
        "ml.c5.xlarge=inf",
        "ml.c5.xlarge=-1",
        "ml.c5.xlarge=0",
        "c5.xlarge=1",
    ],
)
def test_other_forms_of_a_price_are_refused(text):
    with pytest.raises(ConfigError):
        parse_prices([text])


def test_without_all_prices_there_is_no_sum():
    *_, last = bill_lines([SPOT, GROUPS], parse_prices(["ml.c5.4xlarge=0.8"]))
    assert "--price" in last
