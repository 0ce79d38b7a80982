"""RLlib's fields of evaluations in processes of their own, for which a stand-in plays in this
one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import learning
from tests.train.rllib.stand_ins import Calls, Handle, group_of
from train.ppo import PPORunner


class _Runner(PPORunner):
    """Notes how it is asked to play."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.asked: list[dict[str, Any]] = []

    def sample(self, **arguments: Any) -> list[Any]:  # type: ignore[override]
        self.asked.append(arguments)
        return super().sample(**arguments)


@pytest.fixture(scope="module")
def algorithm(one_ray) -> Iterator[Any]:
    built = learning().build_algo()
    yield built
    built.stop()


@pytest.fixture(scope="module")
def runner(algorithm) -> _Runner:
    return _Runner(config=algorithm.evaluation_config, worker_index=1, num_workers=1)


@pytest.fixture
def calls(monkeypatch) -> Calls:
    return Calls(monkeypatch)


@pytest.fixture
def evaluating(algorithm, runner, calls, monkeypatch) -> Any:
    """Change fields of the algorithm and give it one evaluating env runner, apart from this
    process.
    """

    def change(*, healthy: bool = True, **fields: Any) -> None:
        config = algorithm.config.copy(copy_frozen=False)
        for field, value in {"evaluation_num_env_runners": 1, **fields}.items():
            setattr(config, field, value)
        group = group_of(algorithm.evaluation_config, Handle(runner))
        group._worker_manager.set_actor_state(1, healthy=healthy)
        runner.asked.clear()
        calls.timeouts.clear()
        monkeypatch.setattr(algorithm, "config", config)
        monkeypatch.setattr(algorithm, "eval_env_runner_group", group)

    return change


@shows("evaluation_sample_timeout_s", "evaluation_force_reset_envs_before_iteration")
def test_an_evaluation_asks_as_configured(algorithm, runner, calls, evaluating):
    evaluating()
    algorithm.evaluate()
    assert 120.0 in calls.timeouts
    assert runner.asked[0]["force_reset"]
    evaluating(evaluation_sample_timeout_s=7.0, evaluation_force_reset_envs_before_iteration=False)
    algorithm.evaluate()
    assert 7.0 in calls.timeouts
    assert 120.0 not in calls.timeouts
    assert not runner.asked[0]["force_reset"]


@shows(
    "evaluation_auto_duration_min_env_steps_per_sample",
    "evaluation_auto_duration_max_env_steps_per_sample",
)
@pytest.mark.parametrize(
    ("least", "most", "expected"), [(100, 2000, 100), (7, 2000, 7), (100, 50, 50)]
)
def test_an_evaluation_as_long_as_training_plays_so_many_steps(
    algorithm, runner, evaluating, monkeypatch, least, most, expected
):
    """At least. How fast it is isn't known at first."""
    monkeypatch.setattr(algorithm.metrics, "peek", _nothing_logged(algorithm.metrics.peek))
    evaluating(
        evaluation_duration="auto",
        evaluation_auto_duration_min_env_steps_per_sample=least,
        evaluation_auto_duration_max_env_steps_per_sample=most,
    )
    training: Future[None] = Future()
    training.set_result(None)
    algorithm.evaluate(parallel_train_future=training)
    assert [one["num_timesteps"] for one in runner.asked] == [expected]


def _nothing_logged(peek: Any) -> Any:
    """RLlib's method, without the pace of earlier evaluations."""

    def without_pace(key: Any, **arguments: Any) -> Any:
        return arguments["default"] if arguments.get("throughput") else peek(key, **arguments)

    return without_pace


@shows("evaluation_error_after_n_consecutive_skips")
def test_an_evaluation_without_env_runners_is_skipped_as_often_as_configured(algorithm, evaluating):
    evaluating(healthy=False)
    algorithm.evaluate()
    evaluating(healthy=False, evaluation_error_after_n_consecutive_skips=1)
    with pytest.raises(RuntimeError, match="unhealthy"):
        algorithm.evaluate()


@shows("evaluation_unhealthy_workers_timeout_s")
def test_an_evaluation_waits_for_its_env_runners_as_long_as_configured(
    algorithm, runner, evaluating
):
    evaluating(healthy=False)
    algorithm.evaluate()
    assert not runner.asked
    evaluating(healthy=False, evaluation_unhealthy_workers_timeout_s=60.0)
    algorithm.evaluate()
    assert runner.asked


@shows("evaluation_parallel_to_training")
def test_training_runs_beside_an_evaluation_where_that_is_asked_for(
    algorithm, evaluating, monkeypatch
):
    beside: list[bool] = []
    step = algorithm.training_step

    def training_step() -> None:
        beside.append(threading.current_thread() is not threading.main_thread())
        step()

    monkeypatch.setattr(algorithm, "training_step", training_step)
    for parallel in (False, True):
        evaluating(evaluation_interval=1, evaluation_parallel_to_training=parallel)
        assert algorithm.train()["evaluation"]["env_runners"]["num_episodes"] >= 10
    assert beside == [False, True]
