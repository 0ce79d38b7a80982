"""Brings databases of older versions up to date: a list of SQL statements leads from the first
schema to today's.

A new database begins with the version `first_version`, and each statement adds one. The list only
ever grows at its end. A statement keeps what older versions read and write: it adds a column with a
default, or works out a value anew. So an older server may run beside a newer one."""

from __future__ import annotations

from collections.abc import Sequence

from envs.common.errors import ProcsnakeError


class NewerDatabaseError(ProcsnakeError):
    """A database was written by a newer procsnake than this one."""


def missing(
    statements: Sequence[str], version: int, *, where: object, first_version: int = 0
) -> Sequence[str]:
    """Return the statements that a database of this version still needs.

    Raises `NewerDatabaseError`, which names `where` the database lies, if its version is newer than
    the list."""
    newest = first_version + len(statements)
    if version > newest:
        raise NewerDatabaseError(
            f"{where} was written by a newer procsnake: its schema has version {version}, this one"
            f" knows {newest}. Update procsnake, or choose another database"
        )
    return statements[max(0, version - first_version) :]
