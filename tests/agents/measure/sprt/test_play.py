"""Sequential tests as they are played: pairs of equal luck, and one answer whatever happens on the
way.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from agents.measure.sprt.openings import opening
from agents.measure.sprt.play import SprtProgress, play_sprt, points
from agents.measure.sprt.settings import Opening, Sprt
from agents.measure.sprt.statistics import Hypotheses
from agents.measure.tournament.game import record
from agents.measure.tournament.settings import Tournament
from agents.measure.tournament.store import Store, StoreError
from envs.battlesnake.games import play_turn, start_games
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import State
from envs.common.errors import ConfigError
from tests.agents.measure.sprt.made import num_played, play, small
from tests.agents.measure.tournament.made import game
from tests.agents.measure.tournament.made import small as small_tournament
from tests.serve.snakes import good_snake, served


def answer(progress):
    """All but what the clock says."""
    return {
        name: value for name, value in progress.to_dict().items() if name != "spent"
    }, progress.ratios


@pytest.mark.parametrize("seats", [2, 4])
def test_against_itself_an_agent_scores_exactly_its_share_of_every_block(tmp_path, seats):
    # The same start, food and moves from all seats: if only one of them differed, some block would
    # be won or lost.
    progress = play(
        small("flood", "twin=flood", seats=seats, seed=3), tmp_path / "t.db", max_games=10 * seats
    )
    assert progress.blocks == 10
    assert progress.to_dict()["blocks_by_score"][str(Fraction(1, seats))] == 10
    assert {points(game) for game in progress.games} > {Fraction(0)}


def test_no_more_games_are_to_go_than_the_limit_leaves(tmp_path):
    told = []
    hypotheses = Hypotheses(elo1=10.0, alpha=1e-7, beta=1e-7)
    test = replace(small("flood", "twin=flood", seed=3), hypotheses=hypotheses)
    with Store(tmp_path / "t.db", Sprt) as store:
        play_sprt(
            test, store, max_games=9, on_game=lambda progress: told.append(progress.games_to_go())
        )
    # Equal players would need thousands of games for such small risks; of nine, four whole pairs
    # are played.
    assert told == [7, 6, 5, 4, 3, 2, 1, 0]
    assert SprtProgress(test).games_to_go() > 1000


def test_the_games_of_a_pair_begin_alike_with_seats_swapped(tmp_path):
    test = small("flood", "greedy", seed=1)
    progress = play(test, tmp_path / "t.db", max_games=8)
    for first, second in zip(progress.games[::2], progress.games[1::2], strict=True):
        assert [seat.player for seat in first.seats] == [0, 1]
        assert [seat.player for seat in second.seats] == [1, 0]
        boards = [record(test, one, tmp_path / "game.jsonl").boards() for one in (first, second)]
        for a, b in zip(*(found[: test.opening_turns + 1] for found in boards), strict=True):
            assert a["food"] == b["food"]
            assert [snake["body"] for snake in a["snakes"]] == [
                snake["body"] for snake in b["snakes"]
            ]
    assert len({one.seed for one in progress.games}) == 4


def test_food_is_drawn_by_game_and_turn_whatever_the_snakes_do():
    def new_food(moves_seed):
        """By turn, the cells on which food has appeared."""
        state = State(
            1,
            width=11,
            height=11,
            num_snakes=2,
            settings=Settings(minimum_food=0, food_spawn_chance=40),
        )
        state.seed(5)
        running = start_games(state)
        random = np.random.default_rng(moves_seed)
        found = []
        for _ in range(25):
            before = set(np.flatnonzero(state.arrays.food[0]).tolist())
            safe = safe_moves(state, np.zeros(2, int), np.arange(2))
            play_turn(
                state,
                np.array([[random.choice(np.flatnonzero(row)) for row in safe]], np.int8),
                running,
            )
            if not running[0]:
                break
            found.append(set(np.flatnonzero(state.arrays.food[0]).tolist()) - before)
        return found

    streams = [new_food(seed) for seed in range(6)]
    for a, b in pairwise(streams):
        together = list(zip(a, b, strict=False))
        assert len(together) > 5
        assert [bool(x) for x, _ in together] == [bool(y) for _, y in together]
        assert sum(x == y for x, y in together) > 0.8 * len(together)


def test_the_first_place_is_worth_a_point_or_an_equal_share():
    assert points(game((0, 1), (1, 2))) == 1
    assert points(game((1, 1), (0, 2))) == 0
    assert points(game((1, 1), (0, 1))) == Fraction(1, 2)
    assert points(game((1, 1), (0, 1), (1, 1), (1, 4))) == Fraction(1, 3)


def test_the_answer_is_the_same_in_one_go_in_two_and_side_by_side(tmp_path):
    test = small("flood", "greedy", seed=2)
    at_once = play(test, tmp_path / "a.db")
    assert at_once.verdict == "H1"
    begun = play(test, tmp_path / "b.db", max_games=6)
    assert (begun.verdict, begun.blocks) == (None, 3)
    heard = []
    resumed = play(
        test,
        tmp_path / "b.db",
        concurrency=4,
        on_game=lambda progress: heard.append(progress.blocks),
    )
    assert answer(resumed) == answer(at_once)
    assert len(heard) >= 2 * (at_once.blocks - 3)
    assert answer(
        play(test, tmp_path / "b.db", on_game=lambda _: pytest.fail("it was decided"))
    ) == answer(at_once)


def test_blocks_count_in_their_order_and_no_further_than_the_one_that_decides(tmp_path):
    test = small("flood", "greedy", seed=2)
    progress = play(test, tmp_path / "a.db", concurrency=3)
    backwards = SprtProgress(test)
    for one in reversed(progress.games):
        assert backwards.verdict is None
        backwards.add([one])
    backwards.add(
        [game((0, 2), (1, 1), round_=progress.blocks, number=rotation) for rotation in range(2)]
    )
    assert answer(backwards) == answer(progress)
    low, high = test.hypotheses.bounds
    assert all(low < ratio < high for ratio in progress.ratios[:-1])


@pytest.mark.long
def test_a_killed_test_goes_on_and_gives_the_same_answer(tmp_path):
    words = shlex.split(
        "flood greedy --width=7 --height=7 --elo1=40 --seed=4 --jobs=2 --max-turns=200"
    )
    running = subprocess.Popen(
        [sys.executable, "-m", "procsnake", "sprt", *words, "--store=killed.db"],
        cwd=tmp_path,
        env=os.environ,
        stderr=subprocess.DEVNULL,
    )
    test = small("flood", "greedy", elo1=40, seed=4)
    while running.poll() is None and num_played(tmp_path / "killed.db") < 4:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert answer(play(test, tmp_path / "killed.db")) == answer(play(test, tmp_path / "whole.db"))


def test_a_store_keeps_one_test_and_no_tournament(tmp_path):
    test = small("flood", "greedy")
    play(test, tmp_path / "t.db", max_games=2)
    with pytest.raises(ConfigError, match="another sprt: seed differ"):
        play(small("flood", "greedy", seed=9), tmp_path / "t.db")
    with (
        pytest.raises(StoreError, match="holds a sprt, not a tournament"),
        Store(tmp_path / "t.db", Tournament) as store,
    ):
        store.load()
    with Store(tmp_path / "other.db", Tournament) as store:
        store.begin(small_tournament("flood", "greedy"))
    with pytest.raises(StoreError, match="holds a tournament, not a sprt"):
        play(test, tmp_path / "other.db")


def test_it_is_kept_and_read_as_it_was_asked_for(tmp_path):
    book = tuple(opening(small("flood", "greedy"), block) for block in range(2))
    test = small(
        "flood", "a=alphabeta?near=3", nodes=50, book=book, settings=Settings(ruleset="wrapped")
    )
    with Store(tmp_path / "t.db", Sprt) as store:
        store.begin(test)
        store.begin(test)
        assert store.load() == test


def test_a_test_ends_with_its_book(tmp_path):
    twins = small("flood", "twin=flood")
    book = tuple(opening(twins, block) for block in range(3))
    progress = play(small("flood", "twin=flood", book=book), tmp_path / "t.db")
    assert (progress.blocks, progress.verdict) == (3, None)
    assert [one.seed for one in progress.games[::2]] == [one.seed for one in book]


@pytest.mark.parametrize("ends_with", ["book", "games"])
def test_what_is_used_up_is_shown_without_its_players(tmp_path, monkeypatch, ends_with):
    book = tuple(opening(small("flood", "greedy"), block) for block in range(2))
    options = {"max_games": 5} if ends_with == "games" else {}
    with served(good_snake) as url:
        test = small(
            f"gone={url}",
            "flood",
            max_turns=4,
            timeout_ms=2000,
            book=book if ends_with == "book" else (),
        )
        progress = play(test, tmp_path / "t.db", **options)
    assert (progress.blocks, progress.verdict) == (2, None)
    monkeypatch.setattr(
        "agents.effort.make", lambda *_, **__: pytest.fail("nobody has to play any more")
    )
    assert answer(play(test, tmp_path / "t.db", **options)) == answer(progress)


def test_effort_reaches_the_agents_that_know_it(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        "agents.effort.make", lambda spec, **options: made.append((spec, options)) or _Stop.now()
    )
    with Store(tmp_path / "t.db", Sprt) as store, pytest.raises(_Stop):
        play_sprt(small("alphabeta?near=3", "flood", nodes=70), store)
    assert made == [("alphabeta?near=3", {"nodes": 70})]


class _Stop(Exception):
    @classmethod
    def now(cls):
        raise cls


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"specs": ("flood",)}, "between two players"),
        ({"specs": ("flood", "flood")}, "two players are called"),
        ({"seats": 5}, "2 to 4"),
        ({"nodes": 100, "cpu_ms": 5.0}, "one way"),
        ({"opening_turns": 99}, "opening_turns is 99"),
        ({"seats": 3, "book": (Opening(1, ("ud",)),)}, "aren't for 3 snakes"),
    ],
)
def test_what_cannot_be_played_is_refused(wrong, told):
    with pytest.raises(ConfigError, match=told):
        small(*wrong.pop("specs", ("flood", "greedy")), **wrong)
