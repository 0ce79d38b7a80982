"""Tunings as they are played: one answer whatever happens on the way."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from agents.measure.tournament.store import Store
from agents.player import Player
from agents.search.tuning.play import TuningProgress
from agents.search.tuning.settings import Tuning
from envs.common.errors import ConfigError
from tests.agents.measure.sprt.made import num_played
from tests.agents.measure.tournament.made import game
from tests.agents.search.tuning.made import START, play, small

WORDS = [
    "tune-search",
    "games",
    START,
    *shlex.split(
        "--parameters=weights.length,near:2 --r-end=0.1 --pairs=10 --batch=4 --seed=3 --nodes=40"
    ),
]
BOARD = ["--width=7", "--height=7", "--max-turns=120"]
FEW = {"pairs": 5, "batch": 2}
"""Three batches, of which the last one is smaller."""


def answer(progress):
    return progress.to_dict(), [theta.tolist() for theta in progress.path]


def test_the_answer_depends_on_the_seed_and_not_on_the_jobs(tmp_path):
    alone = play(small(**FEW), tmp_path / "a.db")
    assert alone.is_over
    assert alone.games == 10
    assert answer(play(small(**FEW), tmp_path / "b.db", concurrency=3)) == answer(alone)
    assert answer(play(small(**FEW, seed=4), tmp_path / "c.db")) != answer(alone)


def test_sides_are_played_in_pairs_from_one_start_with_seats_swapped(tmp_path):
    play(small(pairs=4), tmp_path / "t.db")
    with Store(tmp_path / "t.db", Tuning) as store:
        games = store.games()
        assert store.load() == small(pairs=4)
    for first, second in zip(games[::2], games[1::2], strict=True):
        assert first.seed == second.seed
        assert [seat.player for seat in first.seats] == [0, 1]
        assert [seat.player for seat in second.seats] == [1, 0]
        assert (first.moves[:4] == second.moves[:4]).all()


def test_among_four_the_sides_sit_by_turns(tmp_path):
    tuning = small(pairs=1, seats=4)
    play(tuning, tmp_path / "t.db")
    with Store(tmp_path / "t.db", Tuning) as store:
        first, second = store.games()
        assert store.load() == tuning
    assert [seat.player for seat in first.seats] == [0, 1, 0, 1]
    assert [seat.player for seat in second.seats] == [1, 0, 1, 0]
    assert first.seed == second.seed
    assert (first.moves[:4] == second.moves[:4]).all()


def test_among_four_a_shared_win_counts_by_its_shares():
    tuning = small(batch=1, pairs=3, seats=4)
    progress = TuningProgress(tuning)
    # Of the three pairs, plus wins one with either of its snakes, one is shared by one snake of
    # each side, and in one two snakes of plus and one of minus come first: 2 shares of 3, of which
    # a third more is won than lost.
    won = [
        game((0, 1), (1, 2), (0, 2), (1, 2), round_=0, number=0),
        game((1, 2), (0, 2), (1, 2), (0, 1), round_=0, number=1),
    ]
    level = [game((0, 1), (1, 1), (0, 3), (1, 3), round_=1, number=n) for n in range(2)]
    shared = [game((0, 1), (1, 1), (0, 1), (1, 4), round_=2, number=n) for n in range(2)]
    progress.add([*won, *level, *shared])
    spsa = progress.spsa
    path = progress.path
    assert path[1] == pytest.approx(spsa.step(path[0], 1, 2))
    assert (path[2] == path[1]).all()
    assert path[3] == pytest.approx(spsa.step(path[2], 3, 2 / 3))
    assert (path[3] != path[2]).any()


def test_the_sides_that_play_are_those_of_the_pair(tmp_path, monkeypatch):
    met = []

    def workers(match, count):
        met.append(match)
        raise InterruptedError

    monkeypatch.setattr("agents.search.tuning.play.InThreads", workers)
    with pytest.raises(InterruptedError):
        play(small(), tmp_path / "t.db")
    progress = TuningProgress(small())
    match = met[0]
    assert match.nodes == 40
    for place in range(4):
        sides = progress.sides(place)
        for side, player in zip(
            (sides.plus, sides.minus), match.players[2 * place : 2 * place + 2], strict=True
        ):
            assert Player.of(player.spec).own_options == {
                "weights": {"length": int(side[0])},
                "near": int(side[1]),
            }


def test_games_won_move_the_parameters_towards_the_side_that_won():
    tuning = small(batch=1, pairs=2)
    progress = TuningProgress(tuning)
    sides = progress.sides(0)
    # Plus wins from both seats.
    progress.add(
        [game((0, 1), (1, 2), round_=0, number=0), game((1, 2), (0, 1), round_=0, number=1)]
    )
    assert progress.pairs == 1
    moved = progress.path[1] - progress.path[0]
    assert (np.sign(moved) == np.sign(sides.plus - sides.minus)).all()
    # A split pair moves nothing.
    progress.add(
        [game((0, 1), (1, 2), round_=1, number=0), game((1, 1), (0, 2), round_=1, number=1)]
    )
    assert (progress.path[2] == progress.path[1]).all()
    assert progress.is_over


def test_a_batch_steps_only_when_it_is_complete_whatever_ended_first():
    tuning = small(batch=2, pairs=4)
    games = [
        game((0, 1), (1, 2), round_=pair, number=rotation)
        for pair in range(4)
        for rotation in range(2)
    ]
    forwards = TuningProgress(tuning, games)
    backwards = TuningProgress(tuning)
    for one in reversed(games):
        assert backwards.pairs == 0
        backwards.add([one])
    assert answer(backwards) == answer(forwards)
    assert len(forwards.path) == 3


def test_what_was_broken_off_goes_on(tmp_path):
    class Enough(Exception):
        pass

    def stop(progress):
        if progress.games == 5:
            raise Enough

    with pytest.raises(Enough):
        play(small(**FEW), tmp_path / "t.db", on_game=stop)
    gone_on = play(small(**FEW), tmp_path / "t.db")
    assert answer(gone_on) == answer(play(small(**FEW), tmp_path / "whole.db"))


@pytest.mark.long
def test_a_killed_tuning_goes_on_and_gives_the_same_answer(tmp_path):
    command = [sys.executable, "-m", "procsnake", *WORDS, *BOARD, "--jobs=2", "--store=killed.db"]
    running = subprocess.Popen(
        command, cwd=tmp_path, env=os.environ, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    while running.poll() is None and num_played(tmp_path / "killed.db", Tuning) < 3:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert num_played(tmp_path / "killed.db", Tuning) >= 3
    assert answer(play(small(), tmp_path / "killed.db")) == answer(
        play(small(), tmp_path / "whole.db")
    )


def test_a_store_keeps_one_tuning(tmp_path):
    play(small(pairs=1), tmp_path / "t.db")
    with pytest.raises(ConfigError, match=r"another tuning: .*pairs"):
        play(small(pairs=2), tmp_path / "t.db")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"seats": 3}, "2 or 4 snakes"),
        ({"pairs": 0}, "pairs is 0"),
        ({"nodes": 5, "cpu_ms": 5.0}, "one way"),
    ],
)
def test_what_cannot_be_played_is_refused(wrong, told):
    with pytest.raises(ConfigError, match=told):
        small(**wrong)
