"""RLlib's fields of env runners in processes of their own. RLlib's own group of env runners is made
from our configuration, and asks stand-ins for its processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import small
from tests.train.rllib.stand_ins import Calls, Handle, group_of
from train.apex import APEX, APEXConfig
from train.appo import APPOConfig
from train.ppo import PPO, PPOConfig, PPORunner
from train.rllib import batched_algorithm, env_runner
from train.rllib.env_runner_failures import EnvRunnerError, RestartDelayedError
from train.rllib.fragment_flow import FragmentFlow


class Runner:
    """Stands in for an env runner. One that `fails` does so when it plays."""

    def __init__(self, *, fails: bool = False) -> None:
        self.config = small()
        self.fails = fails
        self.carried_on: list[Any] = []

    def ping(self) -> None:
        pass

    assert_healthy = ping

    def set_state(self, state: dict[str, Any]) -> None:
        pass

    def carry_on(self, progress: Any) -> None:
        self.carried_on.append(progress)

    def play(self) -> str:
        if self.fails:
            raise ValueError("thin")
        return "played"


@pytest.fixture(autouse=True)
def calls(monkeypatch) -> Calls:
    return Calls(monkeypatch)


def algorithm_of(config: Any, *handles: Handle, kind: type[PPO] | type[APEX] = PPO) -> Any:
    """An algorithm that has these env runners and nothing else."""
    config.env_runners(num_env_runners=len(handles)).validate()
    group = group_of(config, *handles)
    group._local_env_runner = SimpleNamespace(get_state=dict)
    algorithm: Any = kind.__new__(kind)
    algorithm.config = config
    algorithm.env_runner_group = group
    algorithm._counters = Counter()
    return algorithm


def leave_service(group: Any) -> None:
    """Take all env runners out of service, as after an error."""
    for number in group._worker_manager.actor_ids():
        group._worker_manager.set_actor_state(number, healthy=False)


def _restarts(config: Any, calls: Calls) -> Any:
    return group_of(config)._remote_args["max_restarts"]


def _requests_at_a_time(config: Any, calls: Calls) -> Any:
    actors = group_of(config, Handle(Runner()))._worker_manager
    flow = FragmentFlow(most=100)
    return sum(iter(lambda: flow.ask(actors, "play", {}), 0))


def _calls_when_made(config: Any, calls: Calls) -> Any:
    group = group_of(config)
    group._make_worker = lambda **_: Handle(Runner())
    group._setup(config=config, num_env_runners=2, local_env_runner=False)
    return len(calls.timeouts)


def _restored(config: Any, calls: Calls) -> Any:
    """Which of two come back into service. The second needs 20 seconds to answer."""
    algorithm = algorithm_of(config, Handle(Runner()), Handle(Runner(), seconds=20.0))
    leave_service(algorithm.env_runner_group)
    return algorithm.restore_env_runners(algorithm.env_runner_group)


def _timeouts_of_restoring(config: Any, calls: Calls) -> Any:
    """Those of the probe, of the weights and of the progress."""
    algorithm = algorithm_of(config, Handle(Runner()))
    algorithm._progress = {1: "its own"}
    leave_service(algorithm.env_runner_group)
    algorithm.restore_env_runners(algorithm.env_runner_group)
    return calls.timeouts


def _played(config: Any, calls: Calls) -> Any:
    algorithm = algorithm_of(config, Handle(Runner()), Handle(Runner(), seconds=20.0))
    return len(algorithm._play_on_all())


def _rounds_until_the_end(config: Any, calls: Calls) -> Any:
    algorithm = algorithm_of(config, Handle(Runner(fails=True)), Handle(Runner(fails=True)))
    rounds = 1
    with suppress(EnvRunnerError):
        while not algorithm._play_on_all():
            rounds += 1
            assert algorithm.restore_env_runners(algorithm.env_runner_group) == [1, 2]
    return rounds


FIELDS: dict[str, tuple[Any, Callable[[Any, Calls], Any], Any, Any]] = {
    "restart_failed_env_runners": (False, _restarts, 1000, 0),
    "max_num_env_runner_restarts": (7, _restarts, 1000, 7),
    "max_requests_in_flight_per_env_runner": (7, _requests_at_a_time, 2, 7),
    "validate_env_runners_after_construction": (False, _calls_when_made, 1, 0),
    "env_runner_health_probe_timeout_s": (7.0, _restored, [1, 2], [1]),
    "env_runner_restore_timeout_s": (
        7.0,
        _timeouts_of_restoring,
        [30.0, 1800.0, 1800.0],
        [30.0, 7.0, 7.0],
    ),
    "sample_timeout_s": (7.0, _played, 2, 1),
    "num_consecutive_env_runner_failures_tolerance": (4, _rounds_until_the_end, 3, 5),
}
"""Changed values, what is looked at, and what is seen before and after the change."""


@shows(*FIELDS)
@pytest.mark.parametrize("field", FIELDS)
def test_env_runners_are_handled_as_configured(calls, field):
    value, probe, before, after = FIELDS[field]
    kind = APPOConfig if field == "max_requests_in_flight_per_env_runner" else PPOConfig
    assert probe(small(kind), calls) == before
    calls.timeouts.clear()
    config = small(kind)
    setattr(config, field, value)
    assert probe(config, calls) == after


@shows("ignore_env_runner_failures")
def test_without_restarts_a_failure_ends_the_run_unless_it_is_ignored():
    def algorithm(runner: Runner, *, ignores: bool) -> Any:
        config = small().fault_tolerance(
            restart_failed_env_runners=False, ignore_env_runner_failures=ignores
        )
        return algorithm_of(config, Handle(runner), Handle(Runner(fails=True)))

    with pytest.raises(EnvRunnerError, match=r"once.*ValueError: thin"):
        algorithm(Runner(), ignores=False)._play_on_all()
    first = Runner()
    ignoring = algorithm(first, ignores=True)
    assert ignoring._play_on_all() == ignoring._play_on_all() == ["played"]
    assert ignoring.env_runner_group.healthy_env_runner_ids() == [1]
    first.fails = True
    assert ignoring._play_on_all() == []
    with pytest.raises(EnvRunnerError, match=r"restart_failed_env_runners is False.*: thin"):
        ignoring._play_on_all()


def test_the_run_ends_when_no_env_runner_may_be_started_anew(monkeypatch):
    """While one is being started, it goes on without experience."""
    states = {"1": "RESTARTING", "2": "DEAD"}
    monkeypatch.setattr(
        batched_algorithm.ray_state, "actors", lambda number: {"State": states[number]}
    )
    config = small().fault_tolerance(max_num_env_runner_restarts=3)
    handles = [Handle(Runner(fails=True)) for _ in states]
    for handle, number in zip(handles, states, strict=True):
        handle._actor_id = SimpleNamespace(hex=lambda number=number: number)
    algorithm = algorithm_of(config, *handles)
    assert algorithm._play_on_all() == algorithm._play_on_all() == []
    states["1"] = "DEAD"
    with pytest.raises(EnvRunnerError, match=r"max_num_env_runner_restarts is 3.*: thin"):
        algorithm._play_on_all()


@pytest.mark.parametrize(("kind", "config"), [(PPO, PPOConfig), (APEX, APEXConfig)])
def test_only_env_runners_that_train_go_on_where_others_were(kind, config):
    """Those of an evaluation have the same numbers, and may be more."""
    training = [Runner() for _ in range(2)]
    algorithm = algorithm_of(small(config), *map(Handle, training), kind=kind)
    algorithm._progress = {1: "first", 2: "second"}
    algorithm._restored_runners = 0
    evaluating = group_of(algorithm.config, *(Handle(Runner()) for _ in range(3)))
    leave_service(evaluating)
    assert algorithm.restore_env_runners(evaluating) == [1, 2, 3]
    assert [runner.carried_on for runner in training] == [[], []]
    assert algorithm._restored_runners == 0
    algorithm.env_runner_group._worker_manager.set_actor_state(2, healthy=False)
    assert algorithm.restore_env_runners(algorithm.env_runner_group) == [2]
    assert [runner.carried_on for runner in training] == [[], ["second"]]
    assert algorithm._restored_runners == (kind is APEX)


def test_each_env_runner_that_is_back_goes_on_where_it_was_itself(monkeypatch):
    """Also if another one fails again while it is restored."""
    runners = [Runner() for _ in range(3)]
    algorithm = algorithm_of(small(), *map(Handle, runners))
    algorithm._progress = {1: "first", 2: "second", 3: "third"}
    leave_service(algorithm.env_runner_group)
    monkeypatch.setattr(runners[0], "set_state", lambda state: 1 / 0)
    assert algorithm.restore_env_runners(algorithm.env_runner_group) == [1, 2, 3]
    assert [runner.carried_on for runner in runners] == [[], ["second"], ["third"]]


@shows("delay_between_env_runner_restarts_s")
@pytest.mark.parametrize("delay", [None, 60.0])
def test_a_failed_env_runner_ends_its_process_when_the_delay_is_over(monkeypatch, delay):
    config = small()
    if delay:
        config.fault_tolerance(delay_between_env_runner_restarts_s=delay)
    config.validate()
    runner = PPORunner(config=config, worker_index=1)
    now = 100.0
    monkeypatch.setattr(env_runner, "time", SimpleNamespace(monotonic=lambda: now))
    with pytest.raises(ZeroDivisionError):
        runner.apply(lambda _: 1 / 0)
    if delay:
        now += 59.0
        with pytest.raises(RestartDelayedError, match="60 seconds"):
            runner.apply(PPORunner.ping)
        now += 1.0
    with pytest.raises(SystemExit):
        runner.apply(PPORunner.ping)


@shows("create_env_on_local_worker")
def test_this_process_has_a_world_beside_those_of_others_where_that_is_asked_for():
    def runner(config: Any, number: int, **spaces: Any) -> Any:
        config.env_runners(num_env_runners=1).validate()
        return config.env_runner_cls(config=config, worker_index=number, num_workers=1, **spaces)

    apart = runner(small(), 1)
    assert apart.env is not None
    assert runner(small(), 0, spaces=apart.get_spaces()).env is None
    assert runner(small().env_runners(create_env_on_local_worker=True), 0).env is not None
