"""One trial of a search, in this process."""

from __future__ import annotations

import numpy as np
import pytest

import envs
from envs.common.errors import UnknownNameError
from tests.train.experiments import toy
from tests.train.small_worlds import ToyWorld
from train.runs.folder import RunError
from train.tuning.trial import FIXED, TrialRun


class Endless(ToyWorld):
    """No episode ends."""

    def __init__(self, *, num_games: int) -> None:
        super().__init__(num_games=num_games, rows_per_game=1, planes=1, num_actions=2)

    def _show(self, rows: np.ndarray) -> None:
        pass

    def advance(self, actions: np.ndarray) -> None:
        self._book(self.valid)


envs.register("endless", f"{__name__}:Endless")


@pytest.fixture
def trial(one_ray, tmp_path):
    """Begins a trial of a small experiment that is scored by `metric`."""
    begun: list[TrialRun] = []

    def begin(place, *, metric="episode_return_mean", world="identity"):
        experiment = toy(world, steps=1024)
        fixed = {
            "experiment": experiment.to_dict(),
            "folder": str(tmp_path / place),
            "metric": metric,
        }
        begun.append(TrialRun({FIXED: fixed}))
        return begun[-1]

    yield begin
    for one in begun:
        one.stop()


def test_a_trial_that_copied_another_knows_its_score_where_no_budget_is_left_for_a_new_one(
    trial, tmp_path
):
    first = trial("first")
    second = trial("second")
    result = first.step()
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    first.save_checkpoint(str(checkpoint))
    second.load_checkpoint(str(checkpoint))
    copied = second.step()
    assert (copied["done"], copied["percent_done"]) == (True, 100)
    assert copied["episode_return_mean"] == result["episode_return_mean"]


def test_a_metric_without_a_value_yet_is_no_unknown_metric(trial):
    with pytest.raises(
        RunError,
        match=(
            "episode_return_mean has no value by the end of the trial's budget, because no episode"
        ),
    ):
        trial("late", world="endless").step()
    with pytest.raises(UnknownNameError, match=r"tune\.metric"):
        trial("unknown", metric="episode_return_maen").step()
