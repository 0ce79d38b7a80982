"""Hours and money before a job is created, against sums done by hand."""

from __future__ import annotations

import pytest

from envs.common.errors import ConfigError
from train.cluster.speeds import MEASURED
from train.config import Experiment
from train.sagemaker.costs.estimate import affordable_seconds, dollars_per_hour, estimate, quotas
from train.settings.scale import scale_overrides

PRICES = {"ml.g5.2xlarge": 1.5, "ml.c5.9xlarge": 2.0, "ml.c5.xlarge": 0.2}
TWO_KINDS = "ml.g5.2xlarge+2*ml.c5.9xlarge"
DAY = 24 * 3600


def load(
    name: str, instances: str, *, decisions: int | None = None, minutes: float | None = None
) -> Experiment:
    budget = [
        f"budget.total_agent_steps={decisions or 'null'}",
        f"budget.max_minutes={minutes or 'null'}",
    ]
    return Experiment.load(name, [*scale_overrides(instances), *budget])


def test_minutes_of_the_budget_are_the_hours_and_all_instances_cost():
    found = estimate(load("battlesnake-apex", TWO_KINDS, minutes=30), PRICES, max_seconds=DAY)
    assert (found.hours, found.dollars_per_hour) == (0.5, 1.5 + 2 * 2.0)
    assert (found.cost, found.most_cost) == (2.75, 24 * 5.5)
    assert "budget.max_minutes" in found.basis


def test_decisions_of_the_budget_take_as_long_as_the_limit_that_was_measured_lets_through():
    learned = int(MEASURED["battlesnake-ppo"].learned_a_second / 2)
    found = estimate(
        load("battlesnake-ppo", "ml.c5.xlarge", decisions=learned * 7200), PRICES, max_seconds=DAY
    )
    assert found.hours == pytest.approx(2.0)
    assert found.cost == pytest.approx(0.4)
    assert (
        f"{learned:,} per second, where 'learn' is the limit; measured for battlesnake-ppo on"
        " another machine" in found.basis
    )


def test_a_speed_of_ones_own_comes_first_and_of_two_budgets_the_one_that_ends_first():
    both = load("battlesnake-ppo", "ml.c5.xlarge", decisions=36_000_000, minutes=120)
    assert estimate(
        both, PRICES, max_seconds=DAY, decisions_per_second=10_000
    ).hours == pytest.approx(1.0)
    assert estimate(
        both, PRICES, max_seconds=DAY, decisions_per_second=1_000
    ).hours == pytest.approx(2.0)


def test_what_is_not_known_is_not_made_up():
    found = estimate(load("procgen-ppo", "ml.c5.xlarge", decisions=10**6), {}, max_seconds=3600)
    assert (found.hours, found.cost, found.most_cost) == (None, None, None)
    text = "\n".join(line for _, line in found.lines())
    assert "--speed" in text
    assert "--price" in text
    assert "$" not in text


def test_a_job_that_would_be_stopped_too_early_is_told():
    found = estimate(load("battlesnake-ppo", "ml.c5.xlarge", minutes=120), PRICES, max_seconds=3600)
    assert "stopped before that, after 1 hours: --max-hours" in dict(found.lines())["time"]


def test_a_limit_of_money_is_a_limit_of_time():
    experiment = load("battlesnake-apex", TWO_KINDS, minutes=30)
    # 5.50 dollars per hour.
    assert affordable_seconds(experiment, PRICES, 11.0, max_seconds=DAY) == 7200
    assert (
        affordable_seconds(experiment, PRICES, 11.0, max_seconds=DAY, keep_alive_seconds=600)
        == 6600
    )
    for plenty in (1000.0, 1e308):
        assert affordable_seconds(experiment, PRICES, plenty, max_seconds=DAY) == DAY
    assert (
        affordable_seconds(experiment, dict.fromkeys(PRICES, 1e-300), 1e308, max_seconds=DAY) == DAY
    )


@pytest.mark.parametrize(
    ("max_cost", "prices", "message"),
    [
        (2.74, PRICES, "0.5 hours are expected .the experiment's budget.max_minutes"),
        (0.0001, PRICES, "pay for 0 hours"),
        (10.0, {"ml.g5.2xlarge": 1.5}, "add --price ml.c5.9xlarge=DOLLARS"),
    ],
)
def test_a_job_that_is_expected_to_cost_more_is_refused(max_cost, prices, message):
    with pytest.raises(ConfigError, match=message):
        affordable_seconds(
            load("battlesnake-apex", TWO_KINDS, minutes=30), prices, max_cost, max_seconds=DAY
        )


def test_quotas_have_the_names_that_service_quotas_gives_them():
    experiment = load("battlesnake-apex", TWO_KINDS, minutes=30)
    assert quotas(experiment, spot=False) == [
        ("ml.g5.2xlarge for training job usage", 1),
        ("ml.c5.9xlarge for training job usage", 2),
    ]
    assert quotas(experiment, spot=True)[0] == ("ml.g5.2xlarge for spot training job usage", 1)
    single = load("battlesnake-ppo", "ml.c5.xlarge", minutes=30)
    assert quotas(single, spot=False, keep_alive=True)[1] == (
        "ml.c5.xlarge for training warm pool usage",
        1,
    )
    # Both groups may be of one type.
    assert (
        quotas(load("battlesnake-apex", "ml.c5.xlarge+2*ml.c5.xlarge", minutes=1), spot=False)[0][1]
        == 3
    )


def test_without_a_price_for_each_instance_there_is_none_for_all():
    assert (
        dollars_per_hour(load("battlesnake-apex", TWO_KINDS, minutes=1), {"ml.g5.2xlarge": 1.5})
        is None
    )
