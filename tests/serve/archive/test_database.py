"""A database gets the statements that it lacks, and one of a newer version is refused."""

from __future__ import annotations

import gc
import shlex
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy as sa

from agents.agent import Decision
from envs.battlesnake.webhook import read_move_request
from envs.common.migrations import NewerDatabaseError
from serve.archive import database as game_database
from serve.archive.store import GameArchive, GameStore, GamesUnavailableError
from serve.archive.tables import TURNS
from tests.serve.archive.played import play, tell_all

NEXT_COLUMN = "ALTER TABLE games ADD COLUMN note TEXT NOT NULL DEFAULT 'none'"


@pytest.fixture
def old(tmp_path):
    """A database of today's version, which is the first, with one game that is over."""
    file = tmp_path / "games.db"
    store = GameStore(f"sqlite:///{file}")
    tell_all(store, "s", play(seed=1), 0)
    assert store.flush()
    store.close()
    return file


def ask(file, query):
    with closing(sqlite3.connect(file)) as connection, connection:
        return connection.execute(query).fetchall()


def schema(file):
    """(tables with their columns and indexes, version)."""
    engine = sa.create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        found = sa.inspect(connection)
        tables = {
            name: (
                [
                    (column["name"], str(column["type"]), column["nullable"])
                    for column in found.get_columns(name)
                ],
                sorted(tuple(index["column_names"]) for index in found.get_indexes(name)),
            )
            for name in found.get_table_names()
        }
        version = connection.exec_driver_sql("SELECT version FROM schema_version").scalars().all()
    engine.dispose()
    return tables, version


@pytest.fixture
def renamed(tmp_path):
    """A database with one game, whose earlier turn came later and brought 49 KB of names."""
    file = tmp_path / "games.db"
    request = play(seed=1).requests[0][0]
    store = GameStore(f"sqlite:///{file}")
    for number, names in ((1, ["a"]), (0, ["\U0001f40d" * 256] * 16)):
        turn = read_move_request({**request, "turn": number})
        store.started("s", replace(turn, names=names), request)
        store.moved("s", turn, request, Decision(0, note={"fallback": "too late"}), latency_ms=1.0)
        assert store.flush()
    store.close()
    return file


SIZES = "SELECT size, length(game) + length(names) FROM games"


def test_names_that_replace_others_count(renamed):
    ((size, texts),) = ask(renamed, SIZES)
    assert 49_000 < texts < size < texts + 2000


def test_the_next_column_breaks_no_database(old, monkeypatch):
    assert schema(old)[1] == [1]
    monkeypatch.setattr(game_database, "STATEMENTS", (NEXT_COLUMN,))
    for _ in range(2):
        store = GameStore(f"sqlite:///{old}")
        tell_all(store, "s", play(seed=3), 0)
        assert store.flush()
        assert len(store.games()) == 2
        store.close()
    assert ask(old, "SELECT DISTINCT note FROM games") == [("none",)]
    assert schema(old)[1] == [2]


def test_a_new_database_has_the_newest_version(tmp_path, monkeypatch):
    monkeypatch.setattr(game_database, "STATEMENTS", (NEXT_COLUMN,))
    with closing(GameArchive(f"sqlite:///{tmp_path}/games.db")) as archive:
        archive.games()
    assert schema(tmp_path / "games.db")[1] == [2]


def test_a_step_that_fails_changes_nothing(old, monkeypatch):
    good = "ALTER TABLE games ADD COLUMN note TEXT"
    monkeypatch.setattr(game_database, "STATEMENTS", (good, "UPDATE nonsense SET x = 1"))
    told = "no such table: nonsense"
    with (
        closing(GameArchive(f"sqlite:///{old}")) as archive,
        pytest.raises(GamesUnavailableError, match=told),
    ):
        archive.games()
    monkeypatch.undo()
    store = GameStore(f"sqlite:///{old}")
    assert len(store.games()) == 1
    store.close()
    assert "note" not in [column[0] for column in schema(old)[0]["games"][0]]


def test_a_database_of_a_newer_procsnake_is_refused_before_the_server_listens(old):
    with closing(GameArchive(f"sqlite:///{old}")) as archive:
        archive.games()
    ask(old, "UPDATE schema_version SET version = 99")
    store = GameStore(f"sqlite:///{old}")
    with pytest.raises(GamesUnavailableError, match=r"newer procsnake.* version 99"):
        store.games()
    with pytest.raises(NewerDatabaseError, match="Update procsnake"):
        store.check()
    store.writer.close(0.1)
    store._database.close()
    command = [
        sys.executable,
        *shlex.split("-m procsnake serve random --port 0 --database"),
        f"sqlite:///{old}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "written by a newer procsnake" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_the_next_column_breaks_no_database_of_postgres(postgres_url, monkeypatch):
    store = GameStore(postgres_url)
    tell_all(store, "s", play(seed=1), 0)
    assert store.flush(20)
    store.close()
    monkeypatch.setattr(game_database, "STATEMENTS", (NEXT_COLUMN,))
    store = GameStore(postgres_url)
    assert len(store.games()) == 1
    with store._database._engine.begin() as connection:
        versions = connection.exec_driver_sql("SELECT version FROM schema_version").scalars().all()
        notes = connection.exec_driver_sql("SELECT note FROM games").scalars().all()
    assert (versions, notes) == ([2], ["none"])
    store.close()


@pytest.mark.long
def test_a_reader_of_postgres_keeps_its_connection_while_a_writer_looks_again(postgres_url):
    """One that is left to the garbage collector warns, and warnings are errors here."""
    database = game_database.Database(postgres_url)
    with database.reading():
        database.look_again()
        database.close_abandoned(0)
    database.close()
    gc.collect()


def test_threads_that_begin_at_once_leave_no_connection_open(tmp_path):
    """One of them makes the tables; what the others have open by then must not be forgotten."""
    opened = []
    closed = []
    for number in range(20):
        database = game_database.Database(f"sqlite:///{tmp_path}/{number}.db")
        sa.event.listen(
            database._engine, "connect", lambda connection, _: opened.append(id(connection))
        )
        sa.event.listen(
            database._engine, "close", lambda connection, _: closed.append(id(connection))
        )
        together = threading.Barrier(4)

        def begin(database=database, together=together):
            together.wait()
            with database.reading() as connection:
                assert connection.scalar(sa.select(TURNS.c.turn)) is None

        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(begin) for _ in range(4)]:
                done.result()
        database.close()
        assert database.times_created == 1
    assert len(opened) == len(closed) >= 20
