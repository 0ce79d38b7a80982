"""What `procsnake quickstart` shows before it trains, and how long it shows it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from argparse import Namespace

import numpy as np
import pytest

import envs
import procsnake.cli.train.train
from envs.battlesnake.jit import cache as kernel_cache
from procsnake import quickstart
from train.config import Experiment
from train.runs.folder import RunFolder


def test_a_game_is_shown_while_training_compiles(capfd):
    quickstart._show_first_game_while_compiling(0.0)
    assert "╭ turn " in capfd.readouterr().out


def test_the_first_game_compiles_nothing(tmp_path):
    cache = tmp_path / "cache"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PROCSNAKE_CACHE": str(cache)}
    assert (
        quickstart._start(
            "match", *quickstart.FIRST_GAME, stdout=subprocess.DEVNULL, env=env
        ).wait()
        == 0
    )
    assert not list(cache.rglob("*.nbc"))


def test_no_process_outlives_an_interrupted_first_game(monkeypatch):
    processes = []

    def start(*_, **__):
        processes.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        return processes[-1]

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(quickstart, "_start", start)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(KeyboardInterrupt):
        quickstart._show_first_game_while_compiling(None)
    signal.signal(signal.SIGALRM, before)
    assert [process.returncode for process in processes] == [-signal.SIGTERM] * 2


def test_nothing_is_shown_where_the_engine_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_cache, "is_compiled", lambda name: True)
    monkeypatch.setattr(
        quickstart, "_show_first_game_while_compiling", lambda _: pytest.fail("shows a game")
    )
    monkeypatch.setattr(
        procsnake.cli.train.train, "train_and_tell", lambda *_: Namespace(finished=False)
    )
    options = Namespace(experiment="battlesnake-ppo", runs=str(tmp_path), minutes=None, delay=None)
    assert quickstart._trained_run(options) is None


def test_the_engine_counts_as_compiled_once_a_batch_has_moved():
    world = envs.make("battlesnake", num_games=1)
    world.restart(0)
    world.advance(np.zeros(world.num_envs, np.int64))
    assert kernel_cache.is_compiled("show_boards")
    assert not kernel_cache.is_compiled("_no_such_kernel")


@pytest.mark.parametrize(
    ("experiment", "said"),
    [
        ("procgen-ppo-cpu", "procgen-ppo-cpu trains in procgen/coinrun"),
        ("battlesnake-evaluation", "learned_evaluation trains no"),
    ],
)
def test_what_no_snake_comes_of_is_refused_before_it_trains(
    monkeypatch, capsys, tmp_path, experiment, said
):
    monkeypatch.setattr(
        procsnake.cli.train.train, "train_and_tell", lambda *_: pytest.fail("it trains")
    )
    assert procsnake.main(["quickstart", "--experiment", experiment, "--runs", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert f"train {experiment}" in told
    assert told.count("\n") == 1


def test_snakes_of_a_curriculum_are_snakes():
    stages = [{"name": "battlesnake", "until": None, "options": {"observation": "flat-51s"}}]
    changes = [f"env={{name: curriculum, options: {{stages: {stages}}}}}".replace("None", "null")]
    quickstart._require_a_snake(Experiment.load("battlesnake-ppo", changes), "snake.yaml")


def test_a_long_game_is_shown_without_pauses_in_the_end(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(quickstart.time, "monotonic", lambda: clock[0])
    pause = quickstart._hurrying(None)
    assert pause() == quickstart.TURN_S
    clock[0] = quickstart.SHOWN_S
    assert pause() == 0.0
    assert quickstart._hurrying(0.5)() == 0.5


def test_the_headline_names_what_is_trained(tmp_path, capsys):
    run = RunFolder.create(tmp_path, Experiment.load("battlesnake-dqn"), {}).path
    (run / "bundle").mkdir()
    (run / "bundle" / "card.json").touch()
    options = Namespace(experiment="battlesnake-dqn", runs=str(tmp_path), minutes=None, delay=None)
    assert quickstart._trained_run(options) == run
    assert "train: battlesnake-dqn, by dqn" in capsys.readouterr().out
