"""What a dollar buys on some instances, against sums done by hand."""

from __future__ import annotations

import json
import shlex

import pytest

from envs.common.errors import ConfigError
from tests.command_line import run
from train.cluster.speeds import MEASURED
from train.config import Experiment
from train.sagemaker.costs.comparison import compared, parse_speeds

PRICES = {"ml.c5.xlarge": 0.2, "ml.c5.4xlarge": 0.8, "ml.g5.xlarge": 1.5}
LEARNED = MEASURED["battlesnake-ppo"].learned_a_second / 2
"""Decisions per second that one thread goes through twice (docs/lab/cluster.md)."""


def test_the_cheapest_per_decision_comes_first():
    """One learner is the limit on each, so the smallest machine buys the most, unless a GPU was
    measured.
    """
    found = compared(Experiment.load("battlesnake-ppo"), [], PRICES, {})
    assert [one.instances for one in found] == ["ml.c5.xlarge", "ml.c5.4xlarge", "ml.g5.xlarge"]
    assert found[0].decisions_per_second == LEARNED
    assert found[0].decisions_per_dollar == pytest.approx(LEARNED * 3600 / 0.2)
    assert "a GPU counted as one CPU thread" in found[2].basis
    measured = compared(
        Experiment.load("battlesnake-ppo"), [], PRICES, {"ml.g5.xlarge": 8 * LEARNED}
    )
    assert [one.instances for one in measured] == ["ml.g5.xlarge", "ml.c5.xlarge", "ml.c5.4xlarge"]
    assert measured[0].decisions_per_dollar == pytest.approx(8 * LEARNED * 3600 / 1.5)


def test_several_machines_cost_together_and_may_be_slower_for_it():
    text = "ml.g5.xlarge+2*ml.c5.4xlarge"
    found = {
        one.instances: one
        for one in compared(
            Experiment.load("battlesnake-apex"), [text, "3*ml.c5.xlarge"], PRICES, {}
        )
    }
    assert found[text].dollars_per_hour == pytest.approx(1.5 + 2 * 0.8)
    assert found["3*ml.c5.xlarge"].dollars_per_hour == pytest.approx(0.6)
    assert (
        found["3*ml.c5.xlarge"].decisions_per_second
        == MEASURED["battlesnake-apex"].learned_a_second
    )


def test_what_is_not_known_comes_last_and_is_not_made_up():
    procgen = Experiment.load("procgen-ppo")
    first, *others = compared(procgen, [], PRICES, {"ml.c5.4xlarge": 900.0})
    assert (first.instances, first.basis) == ("ml.c5.4xlarge", "your measurement")
    assert [one.decisions_per_dollar for one in others] == [None, None]


def test_an_experiments_own_scale_is_not_in_the_way():
    experiment = Experiment.load(
        "battlesnake-ppo", ["scale.kind=single", "scale.instance=ml.c5.xlarge", "scale.workers=2"]
    )
    found = {
        one.instances: one.dollars_per_hour
        for one in compared(experiment, ["2*ml.c5.xlarge"], PRICES, {})
    }
    assert found == {"2*ml.c5.xlarge": 0.4, **PRICES}


@pytest.mark.parametrize(
    ("instances", "prices", "speeds", "message"),
    [
        ([], {}, {}, "nothing to compare"),
        (
            ["ml.g5.xlarge+ml.c5.xlarge"],
            {"ml.g5.xlarge": 1.0},
            {},
            "add --price ml.c5.xlarge=DOLLARS",
        ),
        ([], PRICES, {"ml.m5.xlarge": 3.0}, "'ml.m5.xlarge', which isn't compared"),
        ([], PRICES, {"": 3.0}, "must be like ml.c5.xlarge=41000"),
        (["c5"], PRICES, {}, "instances 'c5' are not like"),
    ],
)
def test_mistakes_are_named(instances, prices, speeds, message):
    with pytest.raises(ConfigError, match=message.replace("*", r"\*").replace("+", r"\+")):
        compared(Experiment.load("battlesnake-ppo"), instances, prices, speeds)


def test_speeds_are_of_instances():
    assert parse_speeds(["41000", "2*ml.c5.xlarge=9e3"], "ml.g5.xlarge") == {
        "ml.g5.xlarge": 41_000,
        "2*ml.c5.xlarge": 9_000,
    }
    for text in ("x", "ml.c5.xlarge=", "nan", "ml.c5.xlarge=0", "inf", "-1"):
        with pytest.raises(ConfigError, match="DECISIONS or INSTANCES=DECISIONS"):
            parse_speeds([text], "")


def test_the_command_shows_a_table_or_json(capsys):
    words = shlex.split(
        "launch sagemaker battlesnake-ppo --price ml.c5.4xlarge=0.8 "
        "--price ml.c5.xlarge=0.2 --compare"
    )
    code, out, _ = run(capsys, *words)
    names = [line.split()[0] for line in out.splitlines()]
    assert (code, names) == (0, ["instances", "ml.c5.xlarge", "ml.c5.4xlarge"])
    assert f"{LEARNED * 3600 / 0.2 / 1e6:,.1f}" in out.splitlines()[1]
    told = json.loads(run(capsys, *words, "2*ml.c5.4xlarge", "--json")[1])
    assert [one["instances"] for one in told] == [
        "ml.c5.xlarge",
        "ml.c5.4xlarge",
        "2*ml.c5.4xlarge",
    ]
    code, _, error = run(capsys, "launch", "sagemaker", "battlesnake-imitation", *words[3:])
    assert (code, "is a single process" in error) == (2, True)
    words = shlex.split(
        "launch sagemaker battlesnake-ppo --instances ml.c5.xlarge --explain --speed ml.g5.xlarge=3"
    )
    assert "use it with --compare" in run(capsys, *words)[2]
