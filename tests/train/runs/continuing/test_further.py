"""Runs that have ended, and what trains them further."""

from __future__ import annotations

import dataclasses
import math
import shutil

import pytest

from envs.common.errors import ConfigError
from tests.command_line import run as run_command
from tests.train.experiments import toy
from train.run import train
from train.runs.continuing.further import minutes_left
from train.runs.folder import RunFolder
from train.settings.sections import Stop


@pytest.fixture(scope="module")
def ended(one_ray, tmp_path_factory):
    """A run that has learned to play its world, and reached its target and its budget."""
    experiment = dataclasses.replace(
        toy("identity", steps=8 * 1024), stop=Stop(metric="agent_steps", at_least=8 * 1024)
    )
    return train(experiment, runs_dir=tmp_path_factory.mktemp("runs"))


def test_resuming_a_run_that_has_ended_says_so_and_starts_nothing(ended, capsys, monkeypatch):
    monkeypatch.setattr(
        "train.run.check", lambda *given, **options: pytest.fail("it prepared a training")
    )
    code, out, err = run_command(capsys, "train", "--resume", str(ended.path))
    said = " ".join((out + err).split())
    assert code == 0
    assert "has ended: its target is reached (agent_steps of 8192)" in said
    assert f"train --resume {ended.path} --minutes 10" in said
    again = train(resume=ended.path)
    assert (again.finished, again.bundle, again.metrics["iteration"]) == (True, ended.bundle, 8)


def test_what_an_ended_run_lost_is_exported_again(ended):
    shutil.rmtree(ended.bundle)
    assert train(resume=ended.path).metrics["iteration"] == 8
    assert (ended.bundle / "card.json").is_file()


def test_a_run_that_has_ended_is_trained_for_more_minutes_from_what_it_knows(ended):
    before = RunFolder.open(ended.path)[1]
    card = (ended.bundle / "card.json").read_text()
    begun = train(resume=ended.path, minutes=30.0, on_iteration=lambda row: row["iteration"] == 10)
    assert (begun.finished, begun.metrics["iteration"]) == (False, 10)
    assert begun.metrics["episode_return_mean"] >= ended.metrics["episode_return_mean"] - 0.05
    now = RunFolder.open(ended.path)[1]
    assert now.budget.total_agent_steps is None
    assert now.budget.max_minutes == pytest.approx(30 + ended.metrics["minutes"])
    assert dataclasses.replace(now, budget=before.budget, stop=before.stop) == before
    assert RunFolder(ended.path).has_own_config()
    # Its policy is still the one from before. Without minutes the run goes on to the budget that it
    # has now.
    assert (ended.bundle / "card.json").read_text() == card
    assert train(resume=ended.path, on_iteration=lambda row: True).metrics["iteration"] == 11
    over = train(resume=ended.path, minutes=1e-4)
    assert (over.finished, over.metrics["iteration"]) == (True, 12)
    assert (ended.bundle / "card.json").read_text() != card


@pytest.mark.parametrize(
    ("options", "message"),
    [({"minutes": -1.0}, "--minutes is -1"), ({"finish": True}, "leave out one")],
)
def test_minutes_that_cannot_be_are_refused(ended, options, message):
    with pytest.raises(ConfigError, match=message):
        train(resume=ended.path, **{"minutes": 1.0, **options})


def test_the_rest_takes_as_long_as_what_was_done_at_its_speed():
    assert minutes_left(28.0, 0.28) == pytest.approx(72.0)
    assert minutes_left(30.5, 1.02) == 0.0
    assert math.isnan(minutes_left(0.0, 0.0))
