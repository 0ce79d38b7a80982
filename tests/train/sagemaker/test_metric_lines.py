"""The line of an iteration as SageMaker's patterns see it."""

from __future__ import annotations

import re

import pytest

from envs.common.errors import UnknownNameError
from train.sagemaker.metric_lines import (
    metric_definitions,
    metric_line,
    metric_name,
    parse_metric_line,
)

ROW = {
    "iteration": 12,
    "env_steps": 3_000_000,
    "agent_steps": 12_345_678,
    "minutes": 1.5,
    "agent_steps_per_second": 98765.4,
    "episode_return_mean": -0.00012345,
    "episode_len_mean": 88.25,
    "win_rate": 0.5,
    "seconds_learner": 1.0,
}


def test_each_pattern_finds_its_own_figure():
    line = metric_line(ROW)
    found = {
        one["Name"]: [float(text) for text in re.findall(one["Regex"], line)]
        for one in metric_definitions()
    }
    assert found["training_iteration"] == [12]
    assert found["num_env_steps_sampled_lifetime"] == [3_000_000]
    assert found["episode_return_mean"] == [pytest.approx(-0.00012345)]
    assert found["minutes"] == [1.5]
    assert all(len(figures) == 1 for figures in found.values())


def test_the_line_is_read_as_it_was_written():
    figures = parse_metric_line(f"2026-11-21 {metric_line(ROW)}")
    assert len(figures) == len(metric_definitions())
    assert figures["num_agent_steps_sampled_lifetime"] == pytest.approx(12_345_678, rel=1e-5)


def test_what_is_not_known_yet_is_left_out_and_other_lines_say_nothing():
    assert metric_line({"iteration": 1}).split() == ["procsnake-metrics", "training_iteration=1"]
    assert parse_metric_line("loss training_iteration=3") == {}


def test_a_metric_is_named_as_the_curve_or_as_rllib_names_it_and_no_other_way():
    assert metric_name("agent_steps") == "num_agent_steps_sampled_lifetime"
    assert metric_name("num_agent_steps_sampled_lifetime") == "num_agent_steps_sampled_lifetime"
    with pytest.raises(UnknownNameError, match="Did you mean 'win_rate'"):
        metric_name("win_rat")
