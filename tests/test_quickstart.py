"""What `procsnake quickstart` shows before it trains, and how long it shows it."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace

import pytest

import procsnake
import train.commands
from serve import watching
from train.config import Experiment
from train.runs.folder import RunFolder

WORKING = "import time; time.sleep(600)"


@pytest.fixture
def shown(monkeypatch):
    """The players of the game that was shown, and the pauses before and after the process beside it was done."""
    seen = {}

    def watch(referee, delay):
        seen["names"] = list(referee.names)
        seen["working"] = delay()
        seen["process"].kill()
        seen["process"].wait()
        seen["done"] = delay()

    monkeypatch.setattr(watching, "watch", watch)
    return seen


def test_a_champions_game_is_shown_at_its_pace_until_the_rest_is_compiled(shown):
    shown["process"] = subprocess.Popen([sys.executable, "-c", WORKING])
    procsnake._play_meanwhile(shown["process"], None)
    assert shown["names"] == list(procsnake.FIRST_GAME)
    assert (shown["working"], shown["done"]) == (procsnake.TURN_S, 0.0)


def test_what_compiles_beside_a_game_does_not_outlive_it(monkeypatch):
    def interrupted(referee, delay):
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "watch", interrupted)
    process = subprocess.Popen([sys.executable, "-c", WORKING])
    with pytest.raises(KeyboardInterrupt):
        procsnake._play_meanwhile(process, None)
    assert process.returncode is not None


def test_training_waits_for_what_is_compiled_beside_the_game(monkeypatch, capsys):
    monkeypatch.setattr(watching, "watch", lambda referee, delay: None)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"])
    procsnake._play_meanwhile(process, None)
    assert process.returncode == 0
    assert "compiling what training needs" in capsys.readouterr().out


def test_what_compiles_beside_the_game_is_the_command_for_training(monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    procsnake._compiling_for_training()
    ((python, script, *words),) = started
    assert (python, script) == (sys.executable, procsnake.__file__)
    assert procsnake.build_parser().parse_args(words).players == ["training"]


@pytest.mark.parametrize(
    ("experiment", "said"),
    [
        ("procgen-ppo-cpu", "procgen-ppo-cpu trains in procgen/coinrun"),
        ("battlesnake-evaluation", "learned_evaluation trains no"),
    ],
)
def test_what_no_snake_comes_of_is_refused_before_it_trains(monkeypatch, capsys, tmp_path, experiment, said):
    monkeypatch.setattr(train.commands, "train_and_tell", lambda *_: pytest.fail("it trains"))
    assert procsnake.main(["quickstart", "--experiment", experiment, "--runs", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert f"train {experiment}" in told
    assert told.count("\n") == 1


def test_snakes_of_a_curriculum_are_snakes():
    stages = [{"name": "battlesnake", "until": None, "options": {"observation": "flat-51s"}}]
    changes = [f"env={{name: curriculum, options: {{stages: {stages}}}}}".replace("None", "null")]
    procsnake._require_a_snake(Experiment.load("battlesnake-ppo", changes), "snake.yaml")


def test_a_long_game_is_shown_without_pauses_in_the_end(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(procsnake.time, "monotonic", lambda: clock[0])
    pause = procsnake._hurrying(None)
    assert pause() == procsnake.TURN_S
    clock[0] = procsnake.SHOWN_S
    assert pause() == 0.0
    assert procsnake._hurrying(0.5)() == 0.5


def test_the_headline_names_what_is_trained(tmp_path, capsys):
    run = RunFolder.create(tmp_path, Experiment.load("battlesnake-dqn"), {}).path
    (run / "bundle").mkdir()
    (run / "bundle" / "card.json").touch()
    options = Namespace(experiment="battlesnake-dqn", runs=str(tmp_path), minutes=None, delay=None)
    assert procsnake._trained_run(options) == run
    assert "train: battlesnake-dqn, by dqn" in capsys.readouterr().out
