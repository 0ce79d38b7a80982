"""The metrics that a target may name: some come late, and what never comes is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from envs.common.errors import UnknownNameError
from tests.train.experiments import toy
from train.config import Experiment
from train.metrics.rows import nested_result
from train.runs.folder import RunFolder
from train.runs.sessions.progress import Progress
from train.runs.sessions.session import Session


class Told:
    """An algorithm whose iterations tell these metrics of learning."""

    fraction_done = 0.0

    def __init__(self, *learned):
        self.learned = list(learned)

    def train(self):
        episodes = {"return": np.zeros(0)}
        return nested_result(
            env_steps=1,
            agent_steps=1,
            playing=1.0,
            learning=1.0,
            episodes=episodes,
            learned=self.learned.pop(0),
        )

    def save_to_path(self, path):
        Path(path, "state").touch()


def begun(tmp_path, metric, *learned):
    experiment = Experiment.from_dict(
        {**toy("identity").to_dict(), "stop": {"metric": metric, "at_least": 0.5}}
    )
    folder = RunFolder.create(tmp_path, experiment, {})
    session = Session(
        experiment, folder, Told(*learned), Progress(title="run", quiet=True), evaluator=None
    )
    session.begin(None)
    return session


BEFORE = {"epsilon": 1.0}
AFTER = {"epsilon": 0.9, "qf_loss": 0.1}


@pytest.mark.parametrize(
    "metric",
    ["level_return_median", "levels_seen", "test_elo", "accepted", "mean_won", "episode_len_mean"],
)
def test_what_an_ended_episode_or_test_tells_may_come_late(tmp_path, metric):
    session = begun(tmp_path, metric, AFTER, {**AFTER, metric: 0.4}, AFTER, {**AFTER, metric: 0.6})
    for done in (False, False, False, True):
        session.step()
        assert (session.fraction_done() >= 1.0) == done


def test_what_updates_tell_may_come_with_the_first_of_them(tmp_path):
    """DQN learns nothing before `learning_starts`."""
    session = begun(tmp_path, "qf_mean", BEFORE, BEFORE, {**AFTER, "qf_mean": 0.6})
    for done in (False, False, True):
        session.step()
        assert (session.fraction_done() >= 1.0) == done


def test_what_the_first_update_does_not_tell_is_refused_with_the_nearest(tmp_path):
    session = begun(tmp_path, "qf_los", BEFORE, AFTER)
    session.step()
    with pytest.raises(UnknownNameError, match="Did you mean 'qf_loss'"):
        session.step()


@pytest.mark.parametrize("metric", ["level_return_meen", "acceptedd", "test_elow"])
def test_what_only_begins_like_a_late_metric_is_refused(tmp_path, metric):
    session = begun(tmp_path, metric, AFTER, AFTER)
    with pytest.raises(UnknownNameError):
        session.step()


def test_a_column_that_the_run_has_counts_as_nothing_where_it_is_missing(tmp_path):
    session = begun(tmp_path, "teacher", {**AFTER, "teacher": 0.1}, AFTER)
    for _ in range(2):
        session.step()
    assert session.metric("teacher", "stop.metric") == -math.inf
