"""Tournaments as they are played: with their seed, with bad company, and killed on the way."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest

from agents.agent import Agent
from agents.measure.evaluation.remote_snake import SnakeUnreachableError
from agents.measure.tournament.game import Fixture, play_game, record
from agents.measure.tournament.play import play_tournament
from agents.measure.tournament.report import write_report
from agents.measure.tournament.settings import Tournament
from agents.measure.tournament.standings import standings, table
from agents.measure.tournament.store import Store, StoreError
from agents.registry import make, register
from envs.battlesnake.settings import Settings
from envs.common.errors import ConfigError
from procsnake import main
from tests.agents.measure.pages.reading import Page
from tests.agents.measure.tournament.made import small
from tests.serve.snakes import Answer, as_json, good_snake, served


def play(tournament, path, **options):
    with Store(path, Tournament) as store:
        return play_tournament(tournament, store, **options)


def same(a, b):
    return [
        (g.round, g.number, g.seed, [(s.player, s.place, s.cause, s.died) for s in g.seats])
        for g in a
    ] == [
        (g.round, g.number, g.seed, [(s.player, s.place, s.cause, s.died) for s in g.seats])
        for g in b
    ] and all(np.array_equal(x.moves, y.moves) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("form", ["round-robin", "swiss", "ladder"])
def test_among_agents_a_tournament_is_a_function_of_its_seed(tmp_path, form):
    tournament = small("random", "greedy", "flood", "r2=random", form=form, rounds=2, seed=3)
    alone = play(tournament, tmp_path / "a.db")
    together = play(tournament, tmp_path / "b.db", concurrency=4)
    assert same(alone, together)
    assert not same(
        alone,
        play(
            small("random", "greedy", "flood", "r2=random", form=form, rounds=2), tmp_path / "c.db"
        ),
    )


def test_what_is_finished_is_not_played_again_and_rounds_may_be_added(tmp_path):
    path = tmp_path / "t.db"
    heard = []
    first = play(small("random", "greedy", "flood"), path)
    longer = small("random", "greedy", "flood", rounds=3)
    after = play(longer, path, on_game=lambda games: heard.append(games[-1]))
    assert same(after[: len(first)], first)
    assert len(heard) == 2 * len(first)
    assert same(after, play(longer, tmp_path / "anew.db"))
    with pytest.raises(ConfigError, match="another tournament: seed differ"):
        play(small("random", "greedy", "flood", seed=1), path)


def test_a_setting_of_another_tournament_is_refused_where_the_stores_players_go_on(
    tmp_path, capsys
):
    go_on = ["tournament", "--store", str(tmp_path / "t.db")]
    assert main([*go_on, "random", "greedy", "--games", "1", "--max-turns", "3"]) == 0
    for words, told in (
        (["--games", "4"], "games"),
        (["--width", "7", "--nodes", "9"], "width, nodes"),
        (["--think"], "tell_deadline"),
        (["--map", "royale"], "settings"),
    ):
        assert main([*go_on, *words]) == 2
        assert (
            f"t.db holds another tournament: {told} differ. To continue it, leave out the"
            " players and these options" in capsys.readouterr().err
        )
    assert main([*go_on, "--games", "1", "--max-turns", "3", "--rounds", "2", "--json"]) == 0
    assert len(_games(tmp_path / "t.db")) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--out", "game.gif"], "--out is game.gif, but it is for --replay; leave it out"),
        (
            ["--replay", "0/0", "--report", "page.html"],
            "--report is page.html, but it is for the standings",
        ),
        (["--replay", "0/0", "--json"], "--json prints the standings"),
    ],
)
def test_a_file_that_would_not_be_written_is_refused(tmp_path, capsys, words, told):
    assert (
        main(
            [
                *shlex.split("tournament random greedy --games 1 --store"),
                str(tmp_path / "t.db"),
                *words,
            ]
        )
        == 2
    )
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "x.db").write_text("no database" * 100)
    with pytest.raises(StoreError, match="--store"):
        Store(tmp_path / "x.db", Tournament)


@pytest.mark.parametrize(
    "ruleset", ["standard", "royale", "wrapped", "constrictor", "wrapped_constrictor"]
)
def test_the_stored_moves_are_the_whole_game(tmp_path, ruleset):
    tournament = small(
        "flood", "greedy", "r=random", seats=3, games=1, settings=Settings(ruleset=ruleset), seed=2
    )
    (game,) = play(tournament, tmp_path / "t.db")
    with Store(tmp_path / "t.db", Tournament) as store:
        assert same(store.games(), [game])
    recording = record(tournament, game, tmp_path / "game.jsonl")
    assert len(recording.boards()) == game.turns + 1
    last = recording.boards()[-1]["snakes"]
    assert [snake["eliminatedCause"] for snake in last] == [seat.cause for seat in game.seats]
    assert [len(snake["body"]) for snake in last] == [seat.length for seat in game.seats]


def hanging(path, request):
    if path == "/move":
        time.sleep(0.6)
    return good_snake(path, request)


def flooding(path, request):
    return Answer(body=b" " * 10_000_000) if path == "/move" else good_snake(path, request)


def closing(path, request):
    return None if path == "/move" else good_snake(path, request)


def failing(path, request):
    return as_json({}, 500) if path == "/move" else good_snake(path, request)


def test_bad_company_harms_only_its_own_games(tmp_path):
    bad = {"hangs": hanging, "floods": flooding, "closes": closing, "fails": failing}
    with ExitStack() as stack:
        urls = [f"{name}={stack.enter_context(served(respond))}" for name, respond in bad.items()]
        good = f"good={stack.enter_context(served(good_snake))}"
        tournament = small("flood", "greedy", good, *urls, games=1, timeout_ms=250, max_turns=25)
        games = play(tournament, tmp_path / "t.db", concurrency=4)
    assert len(games) == 21
    rows = {row.name: row for row in standings(tournament, games)}
    assert all(rows[name].failures > 0 for name in bad)
    assert [rows[name].failures for name in ("flood", "greedy")] == [0, 0]
    # In one game or another the first failure isn't that a busy machine took longer than a quarter
    # of a second.
    for name, failure in {
        "hangs": "no answer within 250 ms",
        "floods": "larger than",
        "fails": "500",
    }.items():
        assert any(
            failure in seat.failure
            for game in games
            for seat in game.seats
            if tournament.names[seat.player] == name
        )
    # Who never answers goes up until the wall: nobody good loses to it.
    assert max(rows[name].points for name in bad) < min(
        rows[name].points for name in ("flood", "greedy")
    )
    local = small("flood", "greedy", games=1, max_turns=25)
    assert same(games[:1], play(local, tmp_path / "local.db"))


def test_late_answers_of_a_busy_machine_are_kept_and_told_but_not_charged(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "agents.measure.evaluation.busy.LoadMeter.burst", lambda *_, **__: "a burst"
    )
    late = threading.Event()

    def late_once(path, request):
        if path == "/move" and not late.is_set():
            late.set()
            time.sleep(2.5)
        return good_snake(path, request)

    with served(late_once) as url:
        tournament = small(f"http={url}", "flood", games=1, timeout_ms=2000, max_turns=4, nodes=50)
        games = play(tournament, tmp_path / "t.db")
    with Store(tmp_path / "t.db", Tournament) as store:
        (game,) = store.games()
        assert store.load().nodes == 50
    assert [(seat.player, seat.failures, seat.excused) for seat in game.seats] == [
        (0, 0, 1),
        (1, 0, 0),
    ]
    assert "not charged (turns): http 1" in table(standings(tournament, games))
    assert (
        "50 nodes per move (http, flood keep their own effort, not 50 nodes per move)"
        in tournament.effort_in_words
    )


def test_no_server_has_more_games_than_it_may(tmp_path):
    running = set()
    most = [0]
    lock = threading.Lock()

    def counting(path, request):
        if path in ("/start", "/end"):
            with lock:
                (running.add if path == "/start" else running.discard)(request["game"]["id"])
                most[0] = max(most[0], len(running))
        return good_snake(path, request)

    with served(counting) as url:
        tournament = small(
            f"http={url}", "random", "greedy", "flood", max_turns=15, timeout_ms=2000
        )
        play(tournament, tmp_path / "t.db", concurrency=4, per_server=1)
        assert most[0] == 1
        play(tournament, tmp_path / "more.db", concurrency=4, per_server=3)
    assert 1 < most[0] <= 3


def test_no_games_time_is_spent_on_compiling(tmp_path):
    """Every agent has answered on both seats before the first game begins."""
    asked = []

    class Noting(Agent):
        def __init__(self, name):
            self.name = name
            self._random = make("random")

        def act_batch(self, state, boards, slots):
            asked.append(self.name)
            return self._random.act_batch(state, boards, slots)

    for name in ("a", "b"):
        register(f"noting-{name}", partial(Noting, name))
    tournament = small("noting-a", "noting-b", games=1)
    (game,) = play(tournament, tmp_path / "t.db")
    assert asked[:4] == ["a", "a", "b", "b"]
    assert asked[4:] == ["a", "b"] * game.turns


def test_a_url_that_does_not_answer_is_said_before_the_first_game(tmp_path):
    with pytest.raises(SnakeUnreachableError, match=r"127\.0\.0\.1:9"):
        play(small("flood", "gone=http://127.0.0.1:9"), tmp_path / "t.db")


@pytest.mark.parametrize("form", ["round-robin", "bracket"])
def test_what_is_finished_is_shown_without_its_players(tmp_path, monkeypatch, form):
    with served(good_snake) as url:
        tournament = small(f"gone={url}", "flood", form=form, games=1, max_turns=4, timeout_ms=2000)
        games = play(tournament, tmp_path / "t.db")
    monkeypatch.setattr(
        "agents.effort.make", lambda *_, **__: pytest.fail("nobody has to play any more")
    )
    assert same(play(tournament, tmp_path / "t.db"), games)


class Faulty(Agent):
    name = "faulty"

    def act_batch(self, state, boards, slots):
        if state.arrays.turn[boards].any():
            raise ConfigError("this agent can't play here")
        return np.zeros(len(boards), np.int8)


def test_an_agent_that_raises_ends_the_tournament_and_finished_games_stay(tmp_path):
    register("faulty", Faulty)
    tournament = small("random", "greedy", "faulty", games=1)
    with pytest.raises(ConfigError, match="can't play here"):
        play(tournament, tmp_path / "t.db")
    with Store(tmp_path / "t.db", Tournament) as store:
        assert len(store.games()) == 1


def test_a_tournament_that_is_killed_goes_on_without_playing_anything_twice(tmp_path):
    path = tmp_path / "t.db"
    words = ["--games", "6", "--width", "7", "--height", "7", "--jobs", "2", "--store", str(path)]
    process = subprocess.Popen(
        [sys.executable, "procsnake", "tournament", "classics", "flood", "c2=classics", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    # In a new installation it says first that it compiles.
    heard = next(filter(None, map(re.compile(r"game 0/(\d+): .* after").match, process.stderr)))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    before = _games(path)
    assert 0 < len(before) < 18
    played = []
    with Store(path, Tournament) as store:
        tournament = store.load()
        after = play_tournament(
            tournament, store, on_game=lambda games: played.append(games[-1].number)
        )
    numbers = [game.number for game in before]
    assert int(heard[1]) in numbers
    assert sorted(numbers + played) == list(range(18))
    assert same([game for game in after if game.number in numbers], before)
    assert same(_games(path), after)
    # Games from before and after the kill are those that the seed prescribes.
    seated = [make(player.spec) for player in tournament.players]
    for number in (int(heard[1]), played[0]):
        group = [seat.player for seat in after[number].seats]
        fixture = Fixture(0, number, tournament.game_seed(0, number), group)
        assert same([play_game(tournament, fixture, seated)], [after[number]])


def _games(path):
    with Store(path, Tournament) as store:
        return store.games()


def test_the_report_has_everything_and_needs_no_network(tmp_path):
    tournament = Tournament(
        players=small("<b>=random", "greedy", "flood").players, width=7, height=7, games=2
    )
    games = play(tournament, tmp_path / "t.db")
    html = write_report(tournament, games, tmp_path / "out" / "report.html", replays=2).read_text()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    page = Page(html)
    for word in (
        "Standings",
        "Ratings",
        "A game",
        "Who outlived whom",
        "Latency",
        "Causes of death",
        "Games",
    ):
        assert word in page.text.splitlines()
    # What a reader wants first is seen at once: who stands where, how sure that is, and a game.
    first = Page(html.partition("<details>")[0])
    (ratings,) = first.charts.values()
    rows = standings(tournament, games)
    assert [row[0] for row in ratings["rows"]] == [row.name for row in rows]
    for (_, *shown), row in zip(ratings["rows"], rows, strict=True):
        assert shown == pytest.approx([row.elo, *row.interval], rel=1e-3)
    assert sum("data-svg" in attributes for _, attributes in first.tags) == 1
    links = [part.partition('"')[0] for part in html.split('href="')[1:]]
    assert len(links) == 2
    assert all((tmp_path / "out" / link).stat().st_size > 1000 for link in links)


def test_standings_count_every_game_once(tmp_path):
    tournament = small("random", "greedy", "flood", "r2=random", seats=4, games=4)
    games = play(tournament, tmp_path / "t.db")
    rows = standings(tournament, games)
    assert [row.games for row in rows] == [4] * 4
    for game in games:
        # Who lasted longest is first, and each place counts those before it.
        lasted = [seat.died or 10_000 for seat in game.seats]
        assert [seat.place for seat in game.seats] == [
            1 + sum(other > own for other in lasted) for own in lasted
        ]
        assert min(seat.place for seat in game.seats) == 1
    assert sum(row.wins for row in rows) + sum(game.winner is None for game in games) == 4
    assert sum(row.points for row in rows) == pytest.approx(2)
    assert all(sum(row.causes.values()) == 4 for row in rows)
    assert len(table(rows).splitlines()) == 5
    assert json.dumps(rows[0].name) in json.dumps([row.name for row in rows])
