from __future__ import annotations

import signal

import pytest
import yaml

import procsnake
from envs.common.errors import ConfigError
from tests.train.experiments import toy, toy_q, train_until
from train.algorithms import build_algorithm
from train.ppo import PPOConfig
from train.rllib import batched_config
from train.rllib.env_runner_failures import EnvRunnerError, Failures, cause_of, clear_errors


def experiment_of(algorithm, *, num_env_runners, **options):
    made = {"num_env_runners": num_env_runners, "options": {"num_games": 8, **options}}
    return (
        toy("failing", **made)
        if algorithm == "ppo"
        else toy_q("failing", algorithm=algorithm, **made)
    )


def raised(kind, message):
    try:
        raise kind(message)
    except kind as error:
        return error


def test_failures_count_until_there_is_experience_again():
    failures = Failures("ice", 2)
    for _ in range(5):
        failures.note(raised(ValueError, "too thin"))
    failures.forget()
    for _ in range(5):
        failures.note(raised(ValueError, "too thin"))
    with pytest.raises(
        EnvRunnerError,
        match=r"'ice'.*6 times in a row.*ValueError: too thin \(.*line \d+, in raised\)",
    ):
        failures.note(raised(RuntimeError, "the process is gone"))


def test_what_a_process_died_of_is_told_rather_than_that_it_died():
    """As `RayTaskError` carries it."""
    remote = raised(RuntimeError, "wrapped")
    remote.cause = ValueError("too thin")
    remote.traceback_str = 'File "/world.py", line 7, in advance\nValueError: too thin'
    failures = Failures("ice", 1)
    failures.note(raised(OSError, "actor died"))
    failures.note(remote)
    with pytest.raises(
        EnvRunnerError, match=r"ValueError: too thin \(/world.py, line 7, in advance\)"
    ):
        failures.note(raised(OSError, "actor died"))
    assert cause_of(OSError("gone")) == "OSError: gone"


def test_what_is_clear_already_stays_as_it_is():
    with pytest.raises(ConfigError, match=r"^levels$"), clear_errors("ice"):
        raise ConfigError("levels")
    with pytest.raises(EnvRunnerError, match="ZeroDivisionError"), clear_errors("ice"):
        _ = 1 / 0


@pytest.mark.parametrize(
    ("algorithm", "num_env_runners", "tolerated"),
    [
        ("ppo", 0, 2),
        pytest.param("apex", 1, 0, marks=pytest.mark.long),
        pytest.param("ppo", 2, 2, marks=pytest.mark.long),
        pytest.param("dqn", 2, 2, marks=pytest.mark.long),
        pytest.param("apex", 2, 2, marks=pytest.mark.long),
    ],
)
def test_a_world_that_always_fails_ends_the_run_with_one_clear_message(
    one_ray, tmp_path, capsys, monkeypatch, algorithm, num_env_runners, tolerated
):
    monkeypatch.setattr(batched_config, "TOLERATED_FAILURES", tolerated)
    config = tmp_path / "failing.yaml"
    config.write_text(
        yaml.safe_dump(experiment_of(algorithm, num_env_runners=num_env_runners).to_dict())
    )
    assert procsnake.main(["train", "--config", str(config), "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    (line,) = [line for line in said.splitlines() if line.startswith("procsnake")]
    (run,) = (tmp_path / "runs").iterdir()
    for part in (
        "'failing'",
        "ValueError: the ice is too thin",
        "worlds.py, line",
        f"procsnake train --resume {run}",
    ):
        assert part in line


@pytest.mark.long
@pytest.mark.parametrize("restarts", [0, 1])
def test_a_run_ends_when_its_env_runners_were_started_anew_as_often_as_allowed(one_ray, restarts):
    """Which is before each has failed three times in a row."""
    config = PPOConfig.from_experiment(experiment_of("ppo", num_env_runners=2))
    algorithm = config.fault_tolerance(max_num_env_runner_restarts=restarts).build_algo()
    try:
        limit = f"max_num_env_runner_restarts is {restarts}"
        with pytest.raises(EnvRunnerError, match=rf"{limit}\).*the ice is too thin"):
            train_until(algorithm, lambda *_: False)
    finally:
        algorithm.stop()


@pytest.mark.long
def test_ctrl_c_is_heard_while_no_env_runner_plays(one_ray, tmp_path, capsys, monkeypatch):
    """Pressed once, at the first failure of a world that is never given up."""
    pressed = []

    def press(failures, error):
        if not pressed:
            pressed.append(error)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Failures, "note", press)
    config = tmp_path / "failing.yaml"
    config.write_text(yaml.safe_dump(experiment_of("apex", num_env_runners=1).to_dict()))
    assert (
        procsnake.main(["train", "--config", str(config), "--runs", str(tmp_path / "runs")]) == 130
    )
    assert pressed
    assert "stopped before its first iteration" in capsys.readouterr().out


@pytest.mark.long
def test_the_run_goes_on_while_one_env_runner_plays_and_the_other_comes_back(
    one_ray, tmp_path, monkeypatch
):
    """The second world made fails, and two of those that are made in its place."""
    monkeypatch.setattr(batched_config, "TOLERATED_FAILURES", 0)
    algorithm = build_algorithm(experiment_of("apex", num_env_runners=2, folder=str(tmp_path)))
    try:
        train_until(algorithm, lambda _, learned: learned.get("restored_env_runners", 0) >= 3)
        steps = algorithm.agent_steps()
        train_until(algorithm, lambda *_: algorithm.agent_steps() > steps + 2000)
        assert len(list(tmp_path.iterdir())) == 5
    finally:
        algorithm.stop()
