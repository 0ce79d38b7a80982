"""The database of games, in SQLite or PostgreSQL: it is opened, brought up to date, written to, and
cleared of old games.

Every write may be repeated: the first version of a turn is kept, and a game's figures are computed
again from its turns. So requests may come twice, late or to another process, and a batch that may
or may not have been written is simply written again."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from envs.common.errors import ConfigError, MissingDependencyError, pip_install
from envs.common.migrations import missing
from envs.common.strangers.sqlite_files import (
    UnsafeDatabaseError,
    bound,
    refuse_companions,
    schema_of,
    strange_entry,
)
from serve.archive.attempts import news_of
from serve.archive.figures import summary
from serve.archive.option import without_password
from serve.archive.rows import TURN_BYTES, GameRows, game_bytes, turn_bytes
from serve.archive.tables import (
    FIRST_VERSION,
    GAMES,
    KEY,
    META,
    SCHEMA_VERSION,
    STATEMENTS,
    TURNS,
    own_schema,
)

ABANDONED_AFTER_S = 600
"""A game is over when no engine has asked about it for so many seconds."""
_BUSY_S = 2
_MAX_ABANDONED = 1000
_NOBODYS = (-1, -1)
_CREATION_LOCK = 7_061_966
_INSERTS: dict[str, Callable[[sa.Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


class Database:
    """A database at `url`, which is `sqlite:///FILE` or begins with `postgresql://`.

    It connects when it is first used, so a server can start while its database is still away. A
    database of an older procsnake then gets today's schema; one of a newer procsnake raises
    `NewerDatabaseError`. Other failures raise `sqlalchemy.exc.SQLAlchemyError` or `OSError`.

    Raises `ConfigError` for any other URL, and `MissingDependencyError` if PostgreSQL's driver is
    not installed."""

    def __init__(self, url: str) -> None:
        parsed = _parsed_url(url)
        kind = parsed.get_backend_name()
        self.file: Path | None = None
        if kind == "sqlite" and parsed.database:
            self.file = Path(parsed.database)
        if kind == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
            options = {"connect_timeout": 3}
        else:
            options = {"timeout": _BUSY_S}
        self._insert = _INSERTS[kind]
        self._name = without_password(url)
        try:
            self._engine = sa.create_engine(
                parsed, connect_args=options, pool_pre_ping=kind == "postgresql"
            )
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                "psycopg",
                feature="a PostgreSQL database",
                install=pip_install("procsnake[postgres]"),
            ) from error
        if kind == "sqlite":
            sa.event.listen(self._engine, "connect", self._set_up_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
        self._identity: tuple[int, int] | None = _NOBODYS
        self._is_sure = False
        self._connecting = threading.Lock()
        self.times_created = 0
        """How often the tables were created. It is more than once if the database was lost in the
        meantime.
        """

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def look_again(self) -> None:
        """Check the tables before the next write."""
        self._is_sure = False

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Yield a connection for reading."""
        if self._identity != _identity(self.file):
            self._connect(sure=False)
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        if not self._is_sure or self._identity != _identity(self.file):
            self._connect(sure=True)
        with (
            self._engine.connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    def _connect(self, *, sure: bool) -> None:
        """Connect and make sure of the tables, unless another thread has just done so; `sure` asks
        for the tables, too.

        Called when another file lies there than before: a deleted SQLite file lives on for whoever
        has it open. Connections to PostgreSQL need not be left for that, and another thread may be
        using one."""
        with self._connecting:
            if self._identity == _identity(self.file) and (self._is_sure or not sure):
                return
            if self.file is not None:
                self._engine.dispose()
                refuse_companions(self.file)
                self.file.parent.mkdir(parents=True, exist_ok=True)
            with (
                self._engine.connect().execution_options(writes=True) as connection,
                connection.begin(),
            ):
                if self.file is None:
                    # Two processes that create the same table at once would both fail.
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})")
                existed = sa.inspect(connection).has_table(TURNS.name)
                META.create_all(connection)
                self._migrate(connection, is_new=not existed)
            self.times_created += not existed
            self._identity = _identity(self.file)
            self._is_sure = True

    def _set_up_sqlite(self, connection: sqlite3.Connection, _: Any) -> None:
        # The driver's own transactions begin too late to be of use (see `_begin_sqlite`).
        connection.isolation_level = None
        bound(connection)
        self._refuse_other_schemas(connection)
        for setting in (
            "auto_vacuum=INCREMENTAL",
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "wal_autocheckpoint=256",
            "journal_size_limit=1048576",
        ):
            connection.execute(f"PRAGMA {setting}").fetchall()

    def _refuse_other_schemas(self, connection: sqlite3.Connection) -> None:
        """Before anything is written: a file has tables of ours alone, in the form that we gave
        them.
        """
        entries = schema_of(connection)
        expected = own_schema(STATEMENTS)
        if {entry for entry in expected if entry[1] == SCHEMA_VERSION.name} <= entries:
            # A newer archive may have more tables, so its version is looked at first.
            row = connection.execute(f"SELECT version FROM {SCHEMA_VERSION.name}").fetchone()
            self._missing_statements(row[0] if row is not None else FIRST_VERSION)
        strange = strange_entry(entries, expected)
        if strange is not None:
            raise UnsafeDatabaseError(
                f"{self.file} is not an archive of games: it holds {strange[:40]!r}, which doesn't"
                " match procsnake's schema. Choose another --database"
            )

    def _migrate(self, connection: sa.Connection, *, is_new: bool) -> None:
        """Bring the tables up to date, and note the version that they have then."""
        version = connection.scalar(sa.select(SCHEMA_VERSION.c.version)) or FIRST_VERSION
        lacking: Sequence[str] = ()
        if not is_new:
            lacking = self._missing_statements(version)
        for statement in lacking:
            connection.exec_driver_sql(statement)
        if is_new or lacking:
            today = FIRST_VERSION + len(STATEMENTS)
            connection.execute(sa.delete(SCHEMA_VERSION))
            connection.execute(sa.insert(SCHEMA_VERSION).values(version=today))

    def _missing_statements(self, version: int) -> Sequence[str]:
        """The statements that a database of this version needs. Raises `NewerDatabaseError`."""
        return missing(STATEMENTS, version, where=self._name, first_version=FIRST_VERSION)

    def write(self, batch: Sequence[GameRows], *, new_games_only: bool = False) -> None:
        """Add the rows of a batch, all or none; with `new_games_only`, only those of games that
        aren't stored yet, by their ids.
        """
        by_game: dict[tuple[str, str, str], list[GameRows]] = {}
        for rows in batch:
            by_game.setdefault(rows.key, []).append(rows)
        with self._writing() as connection:
            # In one order for everybody, so that two processes on PostgreSQL don't wait for each
            # other.
            left_out: set[str] = set()
            if new_games_only:
                is_in_batch = GAMES.c.game_id.in_({game_id for game_id, *_ in by_game})
                left_out |= set(connection.scalars(sa.select(GAMES.c.game_id).where(is_in_batch)))
            for key in sorted(by_game):
                if key[0] in left_out:
                    continue
                self._write_game(connection, key, by_game[key])

    def _write_game(
        self, connection: sa.Connection, key: tuple[str, str, str], batch: Sequence[GameRows]
    ) -> None:
        names = connection.scalar(_select_key(key, GAMES.c.names))
        for row in batch:
            if row.game is not None:
                self._write_about(connection, row.game)
        stored = connection.execute(
            _select_key(key, GAMES.c.number, GAMES.c.names, GAMES.c.ended, GAMES.c.end)
        ).first()
        if stored is None:
            return
        turns, ends, cut = news_of(connection, stored.number, batch)
        this_game = sa.update(GAMES).where(GAMES.c.number == stored.number)
        if cut is not None:
            self._forget_attempt(connection, stored.number, cut)
            stored = connection.execute(
                _select_key(key, GAMES.c.number, GAMES.c.names, GAMES.c.ended, GAMES.c.end)
            ).one()
        if turns:
            connection.execute(self._insert(TURNS).on_conflict_do_nothing(), turns)
            connection.execute(this_game.values(size=GAMES.c.size + sum(map(turn_bytes, turns))))
        if stored.end is None and ends:
            end = ends[0].end or b""
            connection.execute(
                this_game.values(end=end, ended=ends[0].at, size=GAMES.c.size + len(end))
            )
        elif stored.end is None and stored.ended is not None:
            connection.execute(this_game.values(ended=None))
        # What comes again costs no new summary: strangers may send an end as often as they like.
        has_news = ends if stored.end is None else turns or stored.names != names
        if has_news:
            self._summarise(connection, stored.number)

    def _forget_attempt(self, connection: sa.Connection, number: int, cut: int) -> None:
        """Delete a game's turns from `cut` on, and its end: its runner crashed, and plays it
        again.
        """
        dropped = (TURNS.c.number == number) & (TURNS.c.turn >= cut)
        row_bytes = (
            TURN_BYTES
            + sa.func.length(TURNS.c.data)
            + sa.func.coalesce(sa.func.length(TURNS.c.fallback), 0)
        )
        size = (
            connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(row_bytes), 0)).where(dropped))
            or 0
        )
        end_size = sa.func.coalesce(sa.func.length(GAMES.c.end), 0)
        this_game = sa.update(GAMES).where(GAMES.c.number == number)
        connection.execute(
            this_game.values(size=GAMES.c.size - size - end_size, end=None, ended=None)
        )
        connection.execute(sa.delete(TURNS).where(dropped))

    def _write_about(self, connection: sa.Connection, game: Mapping[str, Any]) -> None:
        """Insert the game if it is new. PostgreSQL takes one of its 2 147 483 647 numbers for each
        insert, needed or not.
        """
        new = {
            name: sa.literal(game[name], GAMES.c[name].type)
            for name in ("names", "first_turn", "started", "seen")
        }
        this_game = sa.update(GAMES).where(*(GAMES.c[name] == game[name] for name in KEY))
        if connection.execute(this_game.values(_columns_after(new))).rowcount:
            return
        insert = self._insert(GAMES).values(**game, size=game_bytes(game))
        # Another process may have been faster.
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=KEY, set_=_columns_after(dict(insert.excluded.items()))
            )
        )

    def _summarise(self, connection: sa.Connection, number: int) -> None:
        row = connection.execute(sa.select(GAMES).where(GAMES.c.number == number)).one()._asdict()
        connection.execute(
            sa.update(GAMES).where(GAMES.c.number == number).values(**summary(connection, row))
        )

    def close_abandoned(self, now: float) -> None:
        """End the games for which requests have stopped."""
        with self._writing() as connection:
            silent = sa.select(GAMES.c.number, GAMES.c.seen).where(
                GAMES.c.ended.is_(None), GAMES.c.seen < now - ABANDONED_AFTER_S
            )
            for game in connection.execute(silent.limit(_MAX_ABANDONED)).all():
                self._summarise(connection, game.number)
                this_game = sa.update(GAMES).where(GAMES.c.number == game.number)
                connection.execute(this_game.values(ended=game.seen))

    def forget(self, *, before: float, max_bytes: int) -> int:
        """Delete the games last seen `before` a time, and the oldest ones until the rest takes at
        most `max_bytes`.

        Returns the number of deleted games.
        """
        with self._writing() as connection:
            running = sa.func.sum(GAMES.c.size).over(
                order_by=(GAMES.c.seen.desc(), GAMES.c.number.desc())
            )
            sized = sa.select(GAMES.c.number, GAMES.c.seen, running.label("total")).subquery()
            old = sa.select(sized.c.number).where(
                (sized.c.seen < before) | (sized.c.total > max_bytes)
            )
            numbers = [number for (number,) in connection.execute(old)]
            for some in _chunks(numbers, 500):
                connection.execute(sa.delete(TURNS).where(TURNS.c.number.in_(some)))
                connection.execute(sa.delete(GAMES).where(GAMES.c.number.in_(some)))
        if numbers and self.file is not None:
            with self._engine.connect() as connection:
                # As a script: a single statement without a result is stepped once, which frees one
                # page.
                script = "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)"
                driver = connection.connection.driver_connection
                assert driver is not None, "the pool has just lent it"
                driver.executescript(script)
        return len(numbers)


def _columns_after(new: Mapping[str, sa.ColumnElement[Any]]) -> dict[str, sa.ColumnElement[Any]]:
    """The columns of a game that is kept already, once the row `new` has come for it."""
    earlier = new["first_turn"] < GAMES.c.first_turn
    # The names are JSON in ASCII, so their length is their size.
    longer = sa.func.length(new["names"]) - sa.func.length(GAMES.c.names)
    return {
        "names": sa.case((earlier, new["names"]), else_=GAMES.c.names),
        "size": sa.case((earlier, GAMES.c.size + longer), else_=GAMES.c.size),
        "first_turn": sa.case((earlier, new["first_turn"]), else_=GAMES.c.first_turn),
        "started": sa.case(
            (new["started"] < GAMES.c.started, new["started"]), else_=GAMES.c.started
        ),
        "seen": sa.case((new["seen"] > GAMES.c.seen, new["seen"]), else_=GAMES.c.seen),
    }


def _select_key(key: tuple[str, str, str], *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return sa.select(*columns).where(
        GAMES.c.game_id == key[0], GAMES.c.snake == key[1], GAMES.c.you == key[2]
    )


def _parsed_url(url: str) -> sa.URL:
    """Return the URL of a database of a kind that we know. Raises `ConfigError` for any other."""
    try:
        parsed = sa.make_url(url.replace("postgres://", "postgresql://", 1))
    except (sa.exc.ArgumentError, ValueError) as error:
        raise ConfigError(
            f"the database is {without_password(url)}, which is not a URL; one looks like"
            " sqlite:///games.db"
        ) from error
    kind = parsed.get_backend_name()
    if kind not in _INSERTS or (kind == "sqlite" and not parsed.database):
        raise ConfigError(
            f"the database is {without_password(url)}, by --database or DATABASE_URL; only"
            " sqlite:///games.db and postgresql://… are known"
        )
    return parsed


def _identity(file: Path | None) -> tuple[int, int] | None:
    """Which file lies there now; None if none does."""
    if file is None:
        return (0, 0)
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _begin_sqlite(connection: sa.Connection) -> None:
    """A writer asks for the lock at once: one that reads first and then wants to write is refused
    without a wait.
    """
    if connection.get_execution_options().get("writes"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("BEGIN")


def _chunks(items: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    return (items[start : start + size] for start in range(0, len(items), size))
