"""Opens SQLite files that may be untrusted.

SQLite trusts the files beside a database. A rollback journal may name another file, which SQLite
then deletes; a companion file that is a link makes it write elsewhere. And a schema can be a
program, with endless views, computed columns and triggers."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from envs.common.errors import ProcsnakeError

MAX_VALUE_BYTES = 32 << 20
"""The longest text or blob that is read from a database. What procsnake writes has at most half of
it.
"""
_COMPANIONS = ("-journal", "-wal", "-shm")
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_MAX_ENTRIES = 1000
_OTHER_WRITING = re.compile(r'[\s"]+')
_SCHEMA = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' LIMIT ?"

SchemaEntry = tuple[str, str, str]
"""Type ("table", "index", "view" or "trigger"), name, and SQL of an entry of the schema, without
white space and quotes.
"""


class UnsafeDatabaseError(ProcsnakeError):
    """Opening a SQLite file could harm other files, because of its content or the files beside
    it.
    """


def refuse_companions(path: Path) -> None:
    """Raise `UnsafeDatabaseError` if opening the SQLite file `path` could touch other files than
    its own. Nothing is opened.

    The log or journal of another process, or of one that was killed, is no danger as long as it
    names no other file: its content counts as the database's own."""
    _refuse_unless_plain(path, "Name the file itself")
    for ending in _COMPANIONS:
        _refuse_unless_plain(Path(f"{path}{ending}"), "Remove it")
    journal = Path(f"{path}-journal")
    if _names_another_file(journal):
        raise UnsafeDatabaseError(
            f"{journal} belongs to a transaction over several databases, so SQLite would delete"
            " another file that it names. procsnake leaves no such journal. Remove it, or get"
            " an intact copy of the database"
        )


def _names_another_file(journal: Path) -> bool:
    """Whether a rollback journal ends with the name of a super-journal, which is followed by
    SQLite's magic bytes.
    """
    try:
        with journal.open("rb") as file:
            file.seek(-len(_JOURNAL_MAGIC), os.SEEK_END)
            return file.read() == _JOURNAL_MAGIC
    except OSError:
        # There is none, or it is too short to name a file.
        return False


def _refuse_unless_plain(path: Path, remedy: str) -> None:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        # There is none, or SQLite says why it can't be reached.
        return
    if stat.S_ISLNK(mode):
        raise UnsafeDatabaseError(
            f"{path} is a link, and databases are not opened through links. {remedy}"
        )
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UnsafeDatabaseError(f"{path} is not a regular file. {remedy}")


def bound(connection: sqlite3.Connection) -> None:
    """Make the connection refuse values of more than 32 MiB, and functions in the schema that have
    effects.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)


def schema_of(connection: sqlite3.Connection) -> set[SchemaEntry]:
    """Return the entries of the schema, at most 1000 of them, without SQLite's own."""
    return {
        (kind, name, _plain(sql or ""))
        for kind, name, sql in connection.execute(_SCHEMA, (_MAX_ENTRIES,))
    }


def schema_after(statements: Sequence[str]) -> set[SchemaEntry]:
    """Return the schema that these statements create."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in statements:
            connection.execute(statement)
        return schema_of(connection)
    finally:
        connection.close()


def strange_entry(schema: Iterable[SchemaEntry], expected: set[SchemaEntry]) -> str | None:
    """Return the name of an entry of a schema that isn't expected or has another form; None if
    there is none.
    """
    return min((name for _, name, _ in set(schema) - expected), default=None)


def _plain(sql: str) -> str:
    return _OTHER_WRITING.sub("", sql)
