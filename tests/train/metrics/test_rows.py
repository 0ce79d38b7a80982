"""The row of an iteration's curve, of RLlib's results and of those of algorithms without it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.train.experiments import toy, toy_q
from train.algorithms import build_algorithm
from train.metrics.rows import nested_result, progress_row


def row_of(causes: list[int], *, learning: float = 1.0, **learned: float) -> dict[str, float]:
    """The row of an iteration without RLlib in which episodes ended by these causes."""
    ended = {
        "return": np.ones(len(causes)),
        "length": np.ones(len(causes)),
        "cause": np.array(causes, np.int64),
    }
    result = nested_result(
        env_steps=8, agent_steps=8, playing=1.0, learning=learning, episodes=ended, learned=learned
    )
    return progress_row(result, 1.0)


def test_an_iteration_in_which_no_episode_ended_has_no_means(one_ray):
    """RLlib has NaN there, for whatever it has had a value before."""
    algorithm = build_algorithm(
        toy("counting", num_steps=4, options={"num_games": 1}, num_minibatches=1)
    )
    try:
        rows = [progress_row(algorithm.train(), 1.0) for _ in range(10)]
    finally:
        algorithm.stop()
    ended = [row["episodes"] > 0 for row in rows]
    assert False in ended[ended.index(True) :]
    for name in ("episode_return_mean", "episode_len_mean", "mean_return", "mean_length"):
        assert [name in row for row in rows] == (
            ended if name.startswith("episode") else [False] * 10
        )
    assert all(math.isfinite(value) for row in rows for value in row.values())


def test_an_iteration_without_an_update_has_no_metrics_of_updates(one_ray):
    """Four games bring 16 decisions in an iteration, and there is an update for each 64."""
    algorithm = build_algorithm(toy_q("identity", options={"num_games": 4}, learning_starts=64))
    try:
        rows = [row for _ in range(16) if (row := progress_row(algorithm.train(), 1.0))]
    finally:
        algorithm.stop()
    updated = ["qf_loss" in row for row in rows]
    assert False in updated[updated.index(True) :]
    for name in ("learning_rate", "gradient_norm", "td_error_mean"):
        assert [name in row for row in rows] == updated
    assert all(math.isfinite(value) for row in rows for value in row.values())


def test_what_apex_counts_stays_without_an_update():
    """RLlib has NaN for its own metrics then, and for the sum of the learner's seconds."""
    row = row_of([0], learning=math.nan, qf_loss=math.nan, learning_rate=math.nan, replay_ratio=2.0)
    assert row["replay_ratio"] == 2.0
    assert row["seconds_learner"] == 0.0
    assert "qf_loss" not in row
    assert "learning_rate" not in row


def test_a_loss_that_is_no_number_any_more_is_shown_as_such():
    row = row_of([0], loss=math.nan, learning_rate=0.1)
    assert math.isnan(row["loss"])


def test_a_cause_by_which_nobody_died_has_a_share_of_zero_and_none_if_no_episode_ended():
    row = row_of([4, 4, 1, 0])
    shares = {name: value for name, value in row.items() if name.startswith("mean_cause_")}
    assert shares == {
        f"mean_cause_{code}": {4: 0.5, 1: 0.25, 0: 0.25}.get(code, 0.0) for code in range(7)
    }
    assert row_of([9])["mean_cause_9"] == 1.0
    assert not any(name.startswith(("mean_", "episode_")) for name in row_of([]))


@pytest.mark.parametrize(
    "norms", [{"default_optimizer": 3.0}, {"default_optimizer": 3.0, "adam": 4.0}]
)
def test_the_norm_of_the_gradient_is_that_over_all_optimizers(norms):
    row = row_of([0], **{f"gradients_{name}_global_norm": norm for name, norm in norms.items()})
    assert row["gradient_norm"] == math.hypot(*norms.values())
    assert not any(name.startswith("gradients_") for name in row)
