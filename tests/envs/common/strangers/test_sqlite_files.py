"""SQLite files by strangers, and what lies beside them."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from envs.common.strangers.sqlite_files import (
    MAX_VALUE_BYTES,
    UnsafeDatabaseError,
    bound,
    refuse_companions,
    schema_after,
    schema_of,
    strange_entry,
)
from tests.sqlite_journal import write_journal


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "games.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE game (moves)")
    return path


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work")
    return path


def test_a_journal_deletes_another_file_so_it_is_refused(database: Path, thesis: Path) -> None:
    write_journal(database, names=thesis)
    with pytest.raises(UnsafeDatabaseError, match="would delete another file"):
        refuse_companions(database)
    # The danger is real: SQLite's own client obeys.
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("SELECT * FROM game")
    assert not thesis.exists()


@pytest.mark.parametrize("ending", ["", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize("leads_somewhere", [True, False])
def test_links_are_refused(
    database: Path, thesis: Path, ending: str, leads_somewhere: bool
) -> None:
    link = Path(f"{database}{ending}")
    link.unlink(missing_ok=True)
    link.symlink_to(thesis if leads_somewhere else thesis.with_name("nothing"))
    with pytest.raises(UnsafeDatabaseError, match=f"{link.name} is a link"):
        refuse_companions(database)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "games.db")
    with pytest.raises(UnsafeDatabaseError, match="is not a regular file"):
        refuse_companions(tmp_path / "games.db")


def test_the_log_of_a_killed_process_is_read_on(database: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO game VALUES (1)")
        for ending in ("", "-wal"):
            Path(f"{killed}{ending}").write_bytes(Path(f"{database}{ending}").read_bytes())
    refuse_companions(killed)
    with closing(sqlite3.connect(killed)) as connection:
        assert connection.execute("SELECT * FROM game").fetchall() == [(1,)]


def test_a_schema_is_the_same_in_other_writing_only() -> None:
    expected = schema_after(
        ["CREATE TABLE game (moves BLOB, turn INTEGER)", "CREATE INDEX turns ON game (turn)"]
    )
    assert (
        strange_entry(schema_after(['CREATE TABLE "game" (moves BLOB,\n\tturn INTEGER)']), expected)
        is None
    )
    for statement in (
        "CREATE TABLE game (moves BLOB, turn INTEGER AS (1))",
        "CREATE VIEW game AS SELECT 1",
    ):
        assert strange_entry(schema_after([statement]), expected) == "game"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 can't set SQLite's limits")
def test_a_value_that_a_row_computes_has_a_bound(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        bound(connection)
        connection.execute("INSERT INTO game VALUES (zeroblob(?))", (MAX_VALUE_BYTES // 2,))
        with pytest.raises(sqlite3.DataError, match="too big"):
            connection.execute("SELECT zeroblob(?)", (MAX_VALUE_BYTES + 1,)).fetchall()
        assert schema_of(connection) == {("table", "game", "CREATETABLEgame(moves)")}


def test_the_journal_of_another_process_is_no_danger(database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.execute("INSERT INTO game VALUES (1)")
        assert Path(f"{database}-journal").exists()
        refuse_companions(database)
