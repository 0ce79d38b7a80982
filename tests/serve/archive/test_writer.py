"""Whatever becomes of the database, nobody waits for it, and no game that ends is lost."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace

import pytest
import sqlalchemy as sa

from agents import make
from agents.agent import Decision
from envs.battlesnake.webhook import read_move_request
from serve.archive.database import Database
from serve.archive.rows import GameRows
from serve.archive.store import GameStore, GamesUnavailableError
from serve.archive.writer import LARGE_REQUEST, MAX_INCOMING_BYTES, Writer, _WallClock
from serve.arena import create_app
from tests.serve.archive.played import play, tell, tell_all
from tests.waiting import until


@pytest.fixture
def file(tmp_path):
    """The one of the fixture `store`."""
    return tmp_path / "games.db"


def all_turns_of(store, game):
    return [turn["turn"] for turn in store.turns(game.game_id, "s") if turn["move"]] == list(
        range(len(game.requests[0]))
    )


def test_a_locked_database_is_waited_for(store, file):
    first = play(seed=1)
    second = play(seed=2)
    tell_all(store, "s", first, 0)
    assert store.flush()
    lock = sqlite3.connect(file, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    tell_all(store, "s", second, 0)
    until(lambda: "locked" in store.writer.problem)
    assert store.writer.waiting
    assert store.games()[0]["id"] == first.game_id  # it can still be read
    lock.execute("ROLLBACK")
    lock.close()
    assert store.flush(20)
    assert all_turns_of(store, second)
    assert store.game(second.game_id, "s")["result"]


def test_a_full_disk_is_waited_for(store):
    games = [play(seed=seed) for seed in range(8)]
    # SQLite takes it as: no larger than it is now.
    limit = {"pages": 1}
    tell(store, "other", ("move", games[0].requests[0][0], 0))
    assert store.flush()

    def set_limit(connection, _):
        connection.execute(f"PRAGMA max_page_count={limit['pages']}").fetchall()

    sa.event.listen(store._database._engine, "connect", set_limit)
    store._database._engine.dispose()
    for game in games:
        tell_all(store, "s", game, 0)
    until(lambda: "full" in store.writer.problem)
    limit["pages"] = 1 << 20
    assert store.flush(20)
    assert all(all_turns_of(store, game) for game in games)
    assert store.writer.lost == 0


@pytest.mark.parametrize("pieces", [("",), ("", "-wal", "-shm")], ids=["file", "file and log"])
def test_a_game_whose_database_vanishes_is_written_again_whole(store, file, pieces):
    game = play(seed=1)
    events = list(game.events(0))
    for event in events[: len(events) // 2]:
        tell(store, "s", event)
    assert store.flush()
    for piece in pieces:
        file.with_name(file.name + piece).unlink(missing_ok=True)
    if pieces == ("",):
        assert store.games() == []  # whoever looks first makes the new one
    for event in events[len(events) // 2 :]:
        tell(store, "s", event)
    assert store.flush(20)
    assert all_turns_of(store, game)
    assert store.game(game.game_id, "s")["result"]


def test_a_place_that_is_not_there_yet_is_waited_for(tmp_path):
    in_the_way = tmp_path / "volume"
    in_the_way.write_text("not a folder")
    store = GameStore(f"sqlite:///{in_the_way}/games.db")
    game = play(seed=1)
    tell_all(store, "s", game, 0)
    until(lambda: store.writer.problem)
    with pytest.raises(GamesUnavailableError):
        store.games()
    in_the_way.unlink()
    assert store.flush(20)
    assert all_turns_of(store, game)
    store.close()


def test_what_waits_is_bounded_and_ends_go_first(tmp_path, caplog):
    in_the_way = tmp_path / "volume"
    in_the_way.write_text("not a folder")
    writer = Writer(
        Database(f"sqlite:///{in_the_way}/games.db"),
        max_bytes=1 << 30,
        max_age_s=1e9,
        max_held_bytes=20_000,
    )
    store = GameStore(f"sqlite:///{tmp_path}/other.db")
    store.writer.close()
    store.writer = writer
    game = play(seed=1)
    for _ in range(5):
        tell_all(store, "s", game, 0)
    until(lambda: not writer._incoming)
    assert writer.lost > 0
    assert writer._held_bytes <= 2 * 20_000
    assert sum(rows.end is not None for rows in writer._held) == 5
    assert "turns are lost" in caplog.text
    writer.close(0.1)
    assert "were not saved" in caplog.text
    store.close()


@pytest.mark.parametrize(
    "dead",
    [{"body": []}, {"health": 0}, {"body": [{"x": -1, "y": 0}]}],
    ids=["bodiless", "0", "off"],
)
@pytest.mark.parametrize("place", [0, 9], ids=["before", "behind"])
@pytest.mark.parametrize("kind", ["move", "end"])
def test_of_those_with_one_id_the_one_that_lives_is_kept(store, dead, place, kind):
    """A stranger's list may have it twice."""
    request = play(seed=1).requests[0][0]
    you, other = request["board"]["snakes"]
    request["board"]["snakes"] = [you, other]
    request["board"]["snakes"].insert(place, {**other, **dead})
    tell(store, "s", ("move", request, 0))
    if kind == "end":
        tell(store, "s", ("end", request, None))
    assert store.flush()
    assert store.writer.lost == 0
    shown = store.turns(request["game"]["id"], "s")[-1]["board"]["snakes"]
    assert [(snake["id"], snake["health"], snake["body"]) for snake in shown] == [
        (snake["id"], snake["health"], snake["body"]) for snake in (you, other)
    ]


def test_of_the_last_boards_entries_with_one_id_only_the_first_is_read(store):
    """Nothing checks the others, so they may lack anything."""
    request = play(seed=1).requests[0][0]
    first, other = request["board"]["snakes"]
    request["board"]["snakes"] = [first, other, {"id": first["id"]}]
    tell(store, "s", ("end", request, None))
    assert store.flush()
    assert store.writer.lost == 0
    assert store.game(request["game"]["id"], "s")["ended"]


def test_requests_that_cannot_be_recorded_fill_no_log(store, caplog, monkeypatch):
    kinds = iter([KeyError, KeyError, IndexError])
    request = play(seed=1).requests[0][0]

    def fail(event):
        raise next(kinds)("as a stranger wants it")

    monkeypatch.setattr("serve.archive.writer.rows_of", fail)
    for _ in range(3):
        tell(store, "s", ("move", request, 0))
    assert store.flush()
    assert store.writer.lost == 3
    assert [record.exc_info[0] for record in caplog.records] == [KeyError, IndexError]


def test_one_that_no_database_can_hold_does_not_stop_the_others(store, caplog):
    bad = play(seed=1)
    good = play(seed=2)
    request = bad.requests[0][0]
    request["board"]["snakes"][0]["body"][0] = dict(request["board"]["snakes"][0]["body"][0])
    tell(store, "s", ("move", request, 0))
    assert store.flush()
    broken = store.writer._database.write

    def write(batch):
        if any(rows.key[0] == bad.game_id for rows in batch):
            raise OverflowError("no column is that wide")
        broken(batch)

    store.writer._database.write = write
    for event in (
        ("move", bad.requests[0][1], 0),
        ("move", bad.requests[0][2], 0),
        *good.events(0),
    ):
        tell(store, "s", event)
    assert store.flush(20)
    assert store.writer.lost == 2
    assert caplog.text.count("no database can hold") == 1
    assert all_turns_of(store, good)


def test_large_requests_are_made_small_at_once(tmp_path):
    in_the_way = tmp_path / "volume"
    in_the_way.write_text("not a folder")
    store = GameStore(f"sqlite:///{in_the_way}/games.db")
    game = play(seed=1)
    store.writer._digest = lambda: None  # as if it were busy with something
    for request in game.requests[0]:
        request["junk"] = "x" * (1 << 20)
        decision = Decision(0)
        store.moved(
            "s",
            read_move_request(request),
            request,
            decision,
            latency_ms=1.0,
            size=len(request["junk"]),
        )
    assert all(isinstance(item, GameRows) for item in store.writer._incoming)
    assert store.writer._incoming_bytes < 3000 * len(game.requests[0])
    store.writer.close(0.1)


def test_requests_that_wait_unread_are_bounded_in_bytes(tmp_path):
    in_the_way = tmp_path / "volume"
    in_the_way.write_text("not a folder")
    store = GameStore(f"sqlite:///{in_the_way}/games.db")
    request = play(seed=1).requests[0][0]
    store.writer._digest = lambda: None
    turn = read_move_request(request)
    for _ in range(3000):
        store.started("s", turn, request, size=LARGE_REQUEST)
    unread = [item.size for item in store.writer._incoming if not isinstance(item, GameRows)]
    assert 10 * sum(unread) <= store.writer._incoming_bytes <= MAX_INCOMING_BYTES
    assert store.writer.lost == 0
    store.writer.close(0.1)


def test_an_end_is_in_the_database_when_it_is_answered(store, monkeypatch):
    monkeypatch.setattr("serve.archive.store.END_S", 60)  # other programs may have the machine
    for seed in range(5):
        game = play(seed=seed)
        tell_all(store, "s", game, 0)
        assert store.game(game.game_id, "s")["ended"]
        assert all_turns_of(store, game)


def test_an_end_waits_for_no_database_that_is_in_trouble(tmp_path):
    in_the_way = tmp_path / "volume"
    in_the_way.write_text("not a folder")
    store = GameStore(f"sqlite:///{in_the_way}/games.db")
    game = play(seed=1)
    until(lambda: store.writer.problem)
    waited = []
    store.writer.wait = lambda number, timeout: waited.append(number)
    tell_all(store, "s", game, 0)
    assert not waited
    store.writer.close(0.1)


def test_the_gauges_of_what_waits_are_fresh(store):
    told = []
    store.writer.report = lambda waiting, lost: told.append(waiting)
    tell(store, "s", ("move", play(seed=1).requests[0][0], 0))
    assert store.flush()
    until(lambda: told[-1:] == [0])
    store.writer._next_housekeeping = time.monotonic() + 3600
    assert any(told)


def test_games_that_only_begin_count_and_the_file_keeps_its_bound(file):
    """Sixteen names of 256 snakes take 49 KB in the database."""
    store = GameStore(f"sqlite:///{file}", max_bytes=1 << 20)
    request = play(seed=1).requests[0][0]
    turn = read_move_request(request)
    highest = 0
    for number in range(300):
        named = replace(turn, game_id=f"hostile-{number}", names=["\U0001f40d" * 256] * 16)
        store.started("s", named, request)
        if number % 50 == 49:
            assert store.flush(60)
            highest = max(highest, sum(piece.stat().st_size for piece in file.parent.iterdir()))
    store.close()
    assert file.stat().st_size < 1.2 * (1 << 20)
    assert highest < 6 << 20
    assert 0 < len(list(store.every_game())) < 25
    assert store.writer.lost == 0
    store.close()


def test_closing_writes_what_is_left(file):
    store = GameStore(f"sqlite:///{file}")
    game = play(seed=1)
    tell_all(store, "s", game, 0)
    store.close()
    assert store.writer.waiting == 0
    again = GameStore(f"sqlite:///{file}")
    assert all_turns_of(again, game)
    again.close()


@pytest.mark.parametrize("jump_s", [400 * 86400, -400 * 86400])
def test_a_clock_that_jumps_costs_no_move_and_no_game(store, monkeypatch, jump_s):
    before = play(seed=1)
    during = play(seed=2)
    tell_all(store, "s", before, 0)
    assert store.flush()
    real_time = time.time
    monkeypatch.setattr(time, "time", lambda: real_time() + jump_s)
    assert (
        create_app(make("flood"), store=store)
        .test_client()
        .post("/move", json=during.requests[0][0])
        .status_code
        == 200
    )
    store.writer._next_housekeeping = 0.0
    tell_all(store, "s", during, 0)
    until(lambda: store.writer._next_housekeeping > 0)
    assert store.flush()
    for game in (before, during):
        assert all_turns_of(store, game)
        assert store.game(game.game_id, "s")["result"]


def test_a_clock_is_believed_again_a_day_after_it_was_set(monkeypatch):
    wall = 1000.0
    since_boot = 0.0
    monkeypatch.setattr(time, "time", lambda: wall)
    monkeypatch.setattr(time, "monotonic", lambda: since_boot)
    clock = _WallClock()
    assert clock.read() == (1000.0, True)
    wall += 3600
    assert clock.read() == (4600.0, False)
    wall = wall + 86399
    since_boot = since_boot + 86399
    assert not clock.read()[1]
    wall = wall + 1
    since_boot = since_boot + 1
    assert clock.read()[1]
