"""The tables of the archive of games, in SQLite or PostgreSQL."""

from __future__ import annotations

import functools

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from envs.common.strangers.sqlite_files import SchemaEntry, schema_after

KEY = ("game_id", "snake", "you")
"""The columns that identify a game: a body of a snake of ours in it."""

META = sa.MetaData()
GAMES = sa.Table(
    "games",
    META,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("game_id", sa.Text, nullable=False),
    sa.Column("snake", sa.Text, nullable=False),
    sa.Column("you", sa.Text, nullable=False),
    sa.Column("game", sa.Text, nullable=False),
    sa.Column("width", sa.Integer, nullable=False),
    sa.Column("height", sa.Integer, nullable=False),
    sa.Column("names", sa.Text, nullable=False),
    sa.Column("first_turn", sa.Integer, nullable=False),
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("seen", sa.Float, nullable=False, index=True),
    sa.Column("ended", sa.Float, index=True),
    sa.Column("end", sa.LargeBinary),
    sa.Column("turns", sa.Integer),
    sa.Column("result", sa.Text),
    sa.Column("cause", sa.Text),
    sa.Column("timeouts", sa.Integer),
    sa.Column("errors", sa.Integer),
    sa.Column("p50", sa.Float),
    sa.Column("p95", sa.Float),
    sa.Column("p99", sa.Float),
    sa.Column("size", sa.Integer, nullable=False, server_default="0"),
    sa.UniqueConstraint(*KEY),
)
TURNS = sa.Table(
    "turns",
    META,
    sa.Column("number", sa.Integer, sa.ForeignKey("games.number"), primary_key=True),
    sa.Column("turn", sa.Integer, primary_key=True),
    sa.Column("move", sa.SmallInteger, nullable=False),
    sa.Column("x", sa.SmallInteger, nullable=False),
    sa.Column("y", sa.SmallInteger, nullable=False),
    sa.Column("fallback", sa.Text),
    sa.Column("latency_ms", sa.Float),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
SCHEMA_VERSION = sa.Table("schema_version", META, sa.Column("version", sa.Integer, nullable=False))
FIRST_VERSION = 1
"""The version of the schema that the tables above have without any of `STATEMENTS`."""
STATEMENTS: tuple[str, ...] = ()
"""What leads from the first schema to today's (`envs.common.migrations`), in SQL that SQLite and
PostgreSQL both know. Tables that are missing altogether are made as they are above."""


@functools.cache
def own_schema(statements: tuple[str, ...]) -> set[SchemaEntry]:
    """Return the entries of an archive's schema in SQLite, as it is created, and as the
    statements lead to it from an older one.
    """
    dialect = sqlite.dialect()
    creations: list[sa.schema.ExecutableDDLElement] = []
    for table in META.sorted_tables:
        creations.append(sa.schema.CreateTable(table))
        creations.extend(map(sa.schema.CreateIndex, table.indexes))
    created = [str(creation.compile(dialect=dialect)) for creation in creations]
    return schema_after(created) | schema_after([*created, *statements])
