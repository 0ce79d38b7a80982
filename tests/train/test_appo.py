from __future__ import annotations

import math
import time

import pytest

from envs.common.errors import ConfigError
from tests.train.experiments import best_return, toy_appo, train_until
from train.algorithms import build_algorithm
from train.run import train
from train.settings import APPOSettings


def test_solves_the_identity_world_in_one_process(one_ray):
    assert best_return(toy_appo("identity"), 30)[0] >= 0.95


def test_solves_the_corridor_whose_rows_end_at_different_times(one_ray):
    best, result = best_return(toy_appo("corridor", gamma=0.95, options={"num_games": 1024}), 60)
    assert best >= 0.95
    assert result["env_runners"]["episode_len_mean"] == pytest.approx(10, abs=1)


def test_learns_from_env_runners_that_play_with_older_weights(one_ray):
    algorithm = build_algorithm(toy_appo("identity", num_env_runners=1, max_lag=4))
    try:
        lags = []

        def solved(result, learned):
            lags.append(learned.get("lag", 0.0))
            return result.get("env_runners", {}).get("episode_return_mean", 0.0) >= 0.95

        _, learned = train_until(algorithm, solved)
        # New weights are on their way for a moment, so a fragment can be some updates older than
        # `max_lag` on a busy machine.
        assert 0 < max(lags) <= 8
        # What was played before the policy was certain is less likely now, or more: it wasn't
        # learned from as if it were new.
        assert learned["ratio_mean"] != 1.0
    finally:
        algorithm.stop()


def test_a_fragment_that_takes_longer_than_an_iteration_is_learned_from(one_ray, monkeypatch):
    monkeypatch.setattr("train.appo._SECONDS_AN_ITERATION", 0.05)
    algorithm = build_algorithm(toy_appo("identity"))
    monkeypatch.setattr(
        algorithm, "_serve", lambda serve=algorithm._serve: (serve(), time.sleep(0.06))
    )
    try:
        assert [
            math.isfinite(algorithm.train()["learners"]["default_policy"]["policy_loss"])
            for _ in range(2)
        ] == [True, True]
    finally:
        algorithm.stop()


def test_while_the_learner_is_behind_the_main_process_rests(one_ray, monkeypatch):
    """Once as much was played as `max_lag` allows, there is nothing to look for. It looked 80,000
    times a second.
    """
    algorithm = build_algorithm(toy_appo("identity", num_env_runners=1, max_lag=1))
    update = algorithm._update_learners
    answers = algorithm._answers
    looks = []
    spent = []

    def slowly(**arguments):
        began = time.monotonic()
        before = len(looks)
        time.sleep(1.0)
        spent.append((time.monotonic() - began, len(looks) - before))
        return update(**arguments)

    monkeypatch.setattr(algorithm, "_update_learners", slowly)
    monkeypatch.setattr(algorithm, "_answers", lambda ask: looks.append(ask) or answers(ask))
    try:
        while not spent:
            algorithm.train()
        ((seconds, times),) = spent[:1]
        # Each look takes a hundredth of a second at least, but for those few that find something.
        assert times <= 2 * 100 * seconds + 20
    finally:
        algorithm.stop()


def test_a_run_is_saved_resumed_and_exported(one_ray, tmp_path):
    experiment = toy_appo("identity", steps=6 * 1024)
    run = train(experiment, runs_dir=tmp_path, on_iteration=lambda row: row["iteration"] == 3).path
    result = train(resume=run)
    assert result.finished
    assert result.metrics["agent_steps"] == 6 * 1024
    assert result.metrics["episode_return_mean"] > 0.5
    assert result.bundle is not None


@pytest.mark.parametrize(
    ("runners", "lag", "expected"), [(0, 8, 1), (4, 8, 1), (5, 8, 2), (7200, 8, 1800), (3, 1, 6)]
)
def test_a_batch_has_as_many_fragments_as_keep_env_runners_busy_within_the_lag(
    runners, lag, expected
):
    assert APPOSettings(max_lag=lag).fragments_per_update(runners) == expected
    assert APPOSettings(max_lag=lag, fragments_per_batch=3).fragments_per_update(runners) == 3


def test_a_limit_by_which_no_decision_counts_is_refused():
    assert APPOSettings(c_clip=0.0).c_clip == 0.0
    with pytest.raises(ConfigError, match=r"appo\.rho_clip is 0.*no decision"):
        APPOSettings(rho_clip=0.0)


def test_a_memory_is_refused():
    with pytest.raises(ConfigError, match="appo knows no memory"):
        toy_appo("identity", lstm_units=8)
