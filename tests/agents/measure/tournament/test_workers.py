"""Games in processes of their own: the same games, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

from agents.measure.tournament.game import BrokenOffError, Fixture
from agents.measure.tournament.play import play_tournament
from agents.measure.tournament.store import Store
from agents.measure.tournament.workers import InProcesses, InThreads, WorkerError, portable
from agents.parallel import WorkerLostError
from envs.common.errors import ConfigError, UnknownNameError
from tests.agents.measure.sprt.made import num_played
from tests.agents.measure.sprt.made import play as play_sprt
from tests.agents.measure.sprt.made import small as small_sprt
from tests.agents.measure.tournament.made import small
from tests.waiting import until

_LONGEST_S = 300

FIXTURE = Fixture(0, 0, 7, (0, 1))


def moves_of(games):
    return [(game.round, game.number, game.seed, game.moves.tolist()) for game in games]


@pytest.fixture
def match():
    return small("flood", "greedy", seed=3)


def test_the_games_are_those_of_threads(tmp_path, match):
    found = []
    for number, workers in enumerate((InThreads, InProcesses)):
        with Store(tmp_path / f"{number}.db", type(match)) as store:
            found.append(play_tournament(match, store, concurrency=2, workers=workers))
    assert moves_of(found[0]) == moves_of(found[1])


def test_so_is_the_answer_of_a_test(tmp_path):
    test = small_sprt("alphabeta", "random", elo1=100.0, nodes=30, seed=2)
    one = play_sprt(test, tmp_path / "a.db")
    two = play_sprt(test, tmp_path / "b.db", concurrency=2, workers=InProcesses)
    assert one.verdict == two.verdict == "H1"
    assert one.ratios == two.ratios
    assert moves_of(one.games) == moves_of(two.games)


def test_a_worker_that_dies_is_told_and_its_game_played_anew(match):
    told = []
    with InThreads(match, 1) as workers:
        expected = workers.play(FIXTURE)
    with InProcesses(match, 1, told.append) as workers, ThreadPoolExecutor(1) as pool:
        game = pool.submit(workers.play, FIXTURE)
        # A process that has only just begun can't have answered yet.
        os.kill(_first_process(workers), signal.SIGKILL)
        assert np.array_equal(game.result(_LONGEST_S).moves, expected.moves)
        assert told == ["a worker process died (signal 9); game 0/0 is played anew"]


def test_a_game_whose_workers_always_die_ends_it(match, monkeypatch):
    told = []
    with InProcesses(match, 1, told.append) as workers:
        monkeypatch.setattr("agents.measure.tournament.workers._Worker.play", _die)
        with pytest.raises(WorkerLostError, match="signal 9"):
            workers.play(FIXTURE)
        assert len(told) == 2


def _die(worker, fixture):
    worker._process.kill()
    return worker._pipe.recv()


def test_what_is_stopped_plays_nothing_more(match):
    with InProcesses(match, 1) as workers, ThreadPoolExecutor(1) as pool:
        game = pool.submit(workers.play, FIXTURE)
        process = _first_process(workers)
        workers.stop()
        with pytest.raises(BrokenOffError):
            game.result(_LONGEST_S)
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
        with pytest.raises(BrokenOffError):
            workers.play(FIXTURE)


def _first_process(workers):
    (worker,) = until(lambda: workers._all, seconds=_LONGEST_S)
    return worker._process.pid


def test_who_cannot_be_made_is_told_before_a_process_starts():
    with pytest.raises(UnknownNameError, match="greedy"):
        InProcesses(small("flood", "gredy"), 2)


def test_every_error_can_be_told():
    error = portable(UnknownNameError("agent", "gredy", ["greedy"]))
    assert isinstance(error, UnknownNameError)
    locked = ConfigError("it is locked")
    locked.lock = threading.Lock()
    assert str(portable(locked)) == "ConfigError: it is locked"
    assert isinstance(portable(locked), WorkerError)


@pytest.mark.long
def test_ctrl_c_ends_all_processes_and_keeps_the_games(tmp_path):
    words = ["sprt", "flood", "twin=flood", "--elo1", "1", "--jobs", "2", "--store", "stopped.db"]
    running = subprocess.Popen(
        [sys.executable, "-m", "procsnake", *words],
        cwd=tmp_path,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    while running.poll() is None and not num_played(tmp_path / "stopped.db"):
        time.sleep(0.05)
    # As a terminal does: to all processes at once.
    os.killpg(running.pid, signal.SIGINT)
    told, _ = running.communicate(timeout=_LONGEST_S)
    assert running.returncode == 130, told
    assert "Traceback" not in told
    assert num_played(tmp_path / "stopped.db")
    until(lambda: not _is_there(running.pid), seconds=_LONGEST_S)


def _is_there(group):
    """Whether a process of the group is left."""
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False
