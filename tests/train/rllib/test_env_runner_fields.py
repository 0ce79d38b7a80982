"""RLlib's fields of env runners in processes of their own. RLlib's own group of env runners is made
from our configuration, and a stand-in for its processes notes what it asks of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from ray.rllib.utils.actor_manager import RemoteCallResults, ResultOrError

from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import small
from train.appo import APPOConfig
from train.ppo import PPO, PPOConfig
from train.rllib.batched_algorithm import _EnvRunnerGroup
from train.rllib.env_runner_failures import EnvRunnerError


class Actors:
    """Stands in for RLlib's manager of two env runners. The second always fails."""

    def __init__(self) -> None:
        self.healthy = [1, 2]
        self.timeouts: list[float | None] = []

    def num_actors(self) -> int:
        return 2

    def actor_ids(self) -> list[int]:
        return [1, 2]

    def healthy_actor_ids(self) -> list[int]:
        return self.healthy

    def add_actors(self, actors: list[Any]) -> None:
        pass

    def probe_unhealthy_actors(self, *, timeout_seconds: float, mark_healthy: bool) -> list[int]:
        self.timeouts.append(timeout_seconds)
        return [1]

    def foreach_actor(
        self, func: Any, *, timeout_seconds: float | None = None, **_: Any
    ) -> RemoteCallResults:
        self.timeouts.append(timeout_seconds)
        results = RemoteCallResults()
        answers = {1: ResultOrError(result="played"), 2: ResultOrError(error=ValueError("thin"))}
        for number in self.healthy:
            results.add_result(number, answers[number], "play")
        return results


@pytest.fixture(autouse=True)
def no_ray(monkeypatch) -> None:
    """Nothing is put anywhere."""
    monkeypatch.setattr(ray, "put", lambda value: value)


def group_of(config: Any) -> Any:
    """RLlib's group of this configuration, which has no processes yet."""
    config.env_runners(num_env_runners=2).validate()
    return _EnvRunnerGroup(config=config, _setup=False)


def with_actors(group: Any) -> Any:
    """The same group over the stand-in."""
    group._worker_manager = Actors()
    group._make_worker = lambda **_: None
    return group


def algorithm_of(config: Any) -> Any:
    """An algorithm that has env runners and nothing else."""
    group = with_actors(group_of(config))
    group._local_env_runner = SimpleNamespace(get_state=dict)
    algorithm: Any = PPO.__new__(PPO)
    algorithm.config = config
    algorithm.env_runner_group = group
    algorithm._counters = Counter()
    return algorithm


def _restarts(config: Any) -> Any:
    return group_of(config)._remote_args["max_restarts"]


def _requests_at_a_time(config: Any) -> Any:
    return group_of(config)._worker_manager._max_remote_requests_in_flight_per_actor


def _calls_when_made(config: Any) -> Any:
    group = with_actors(group_of(config))
    group._setup(config=config, num_env_runners=2, local_env_runner=False)
    return len(group._worker_manager.timeouts)


def _timeouts_of_restoring(config: Any) -> Any:
    algorithm = algorithm_of(config)
    assert algorithm.restore_env_runners(algorithm.env_runner_group) == [1]
    return algorithm.env_runner_group._worker_manager.timeouts


def _timeouts_of_playing(config: Any) -> Any:
    algorithm = algorithm_of(config)
    assert algorithm._play_on_all() == ["played"]
    return algorithm.env_runner_group._worker_manager.timeouts


FIELDS: dict[str, tuple[Any, Callable[[Any], Any], Any]] = {
    "restart_failed_env_runners": (False, _restarts, 0),
    "max_num_env_runner_restarts": (7, _restarts, 7),
    "max_requests_in_flight_per_env_runner": (7, _requests_at_a_time, 7),
    "validate_env_runners_after_construction": (False, _calls_when_made, 0),
    "env_runner_health_probe_timeout_s": (7.0, _timeouts_of_restoring, [7.0, 1800.0]),
    "env_runner_restore_timeout_s": (7.0, _timeouts_of_restoring, [30.0, 7.0]),
    "sample_timeout_s": (7.0, _timeouts_of_playing, [7.0]),
}
"""Changed values, what is looked at, and what is seen."""


@shows(*FIELDS)
@pytest.mark.parametrize("field", FIELDS)
def test_env_runners_are_handled_as_configured(field):
    value, probe, expected = FIELDS[field]
    kind = APPOConfig if field == "max_requests_in_flight_per_env_runner" else PPOConfig
    config = small(kind)
    setattr(config, field, value)
    assert probe(config) == expected != probe(small(kind))


@shows("ignore_env_runner_failures")
def test_without_restarts_a_failure_ends_the_run_unless_it_is_ignored():
    def algorithm(*, ignores: bool) -> Any:
        config = small().fault_tolerance(
            restart_failed_env_runners=False, ignore_env_runner_failures=ignores
        )
        return algorithm_of(config)

    with pytest.raises(EnvRunnerError, match=r"once.*ValueError: thin"):
        algorithm(ignores=False)._play_on_all()
    ignoring = algorithm(ignores=True)
    assert ignoring._play_on_all() == ["played"]
    ignoring.env_runner_group._worker_manager.healthy = []
    with pytest.raises(EnvRunnerError, match="no env runner is left"):
        ignoring._play_on_all()


@shows("create_env_on_local_worker")
def test_this_process_has_a_world_beside_those_of_others_where_that_is_asked_for():
    def runner(config: Any, number: int, **spaces: Any) -> Any:
        config.env_runners(num_env_runners=1).validate()
        return config.env_runner_cls(config=config, worker_index=number, num_workers=1, **spaces)

    apart = runner(small(), 1)
    assert apart.env is not None
    assert runner(small(), 0, spaces=apart.get_spaces()).env is None
    assert runner(small().env_runners(create_env_on_local_worker=True), 0).env is not None
