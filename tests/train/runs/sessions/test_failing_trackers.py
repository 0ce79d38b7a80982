"""A tracker that fails is said once and left out; the run's own files go on. `test_trackers` tries
the real ones.
"""

from __future__ import annotations

import pytest

from envs.common.errors import ConfigError, UnknownNameError
from tests.train.experiments import toy
from train.runs.sessions import trackers
from train.runs.sessions.progress import Progress
from train.runs.sessions.trackers import Tracking, require_trackers


class Full:
    """Takes one row, and then fails."""

    def __init__(self, folder, experiment):
        self.rows = []

    def log(self, values, iteration):
        if self.rows:
            raise ValueError("quota\nexceeded")
        self.rows.append((iteration, values))

    def close(self):
        raise AssertionError("a tracker that was left out isn't closed")


def tracking(folder, **kinds):
    return Tracking(
        folder, toy("identity"), first=1, trackers=list(kinds), progress=Progress(title="toy")
    )


def test_a_tracker_that_fails_is_left_out_and_said_once(tmp_path, monkeypatch, capsys):
    made = []
    monkeypatch.setitem(
        trackers._TRACKERS, "mlflow", lambda *told: made.append(Full(*told)) or made[0]
    )
    sent = tracking(tmp_path, mlflow=True)
    for n in (1, 2, 3):
        sent.log({"iteration": n, "loss": 0.5, "nothing": float("inf")})
    sent.close()
    said = capsys.readouterr()
    assert (said.out + said.err).count("mlflow gets no more rows: quota exceeded") == 1
    assert made[0].rows == [(1, {"iteration": 1.0, "loss": 0.5})]


def test_a_tracker_that_cannot_begin_is_an_error_of_one_line(tmp_path, monkeypatch):
    def refuses(folder, experiment):
        raise OSError("no server\nthere")

    monkeypatch.setitem(trackers._TRACKERS, "wandb", refuses)
    with pytest.raises(ConfigError, match="--wandb can't begin: no server there"):
        tracking(tmp_path, wandb=True)


def test_an_unknown_tracker_is_answered_with_the_near_one():
    with pytest.raises(UnknownNameError, match=r"unknown tracker 'mlflo'\. Did you mean 'mlflow'"):
        require_trackers(["mlflo"])
