"""Brings databases of older versions up to date: a list of SQL statements leads from the first
schema to today's.

A database of version n has had the first n statements. The list only ever grows at its end. A
statement keeps what older versions read and write: it adds a column with a default, or works out a
value anew. So an older server may run beside a newer one."""

from __future__ import annotations

from collections.abc import Sequence

from envs.common.errors import ProcsnakeError


class NewerDatabaseError(ProcsnakeError):
    """A database was written by a newer procsnake than this one."""


def missing(statements: Sequence[str], version: int, *, where: object) -> Sequence[str]:
    """Return the statements that a database of this version still needs.

    Raises `NewerDatabaseError`, which names `where` the database lies, if its version is newer than
    the list."""
    if version > len(statements):
        raise NewerDatabaseError(
            f"{where} was written by a newer procsnake: its schema has version {version}, this one"
            f" knows {len(statements)}. Update procsnake, or choose another database"
        )
    return statements[version:]
