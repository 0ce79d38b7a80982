"""The database of games, in SQLite or PostgreSQL: its tables, what is written to them, and when
games are deleted.

Every write may be repeated: the first version of a turn is kept, and a game's figures are computed
again from its turns. So requests may come twice, late or to another process, and a batch that may
or may not have been written is simply written again. A turn with another board than before starts a
new attempt at the game, which replaces the crashed one."""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from envs.common.errors import ConfigError, MissingDependencyError, pip_install
from envs.common.migrations import missing
from envs.common.strangers.sqlite_files import (
    SchemaEntry,
    UnsafeDatabaseError,
    bound,
    refuse_companions,
    schema_after,
    schema_of,
    strange_entry,
)
from serve.archive.option import without_password
from serve.archive.outcome import AnswerRow, cause_of_death, not_played, percentiles, result
from serve.archive.rows import TURN_BYTES, GameRows, game_bytes, turn_bytes, unpack

ABANDONED_AFTER_S = 600
"""A game is over when no engine has asked about it for so many seconds."""
_BUSY_S = 2
_MAX_ABANDONED = 1000
_KEY = ("game_id", "snake", "you")
_NOBODYS = (-1, -1)
_CREATION_LOCK = 7_061_966
_INSERTS: dict[str, Callable[[sa.Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}

_META = sa.MetaData()
GAMES = sa.Table(
    "games",
    _META,
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
    sa.UniqueConstraint(*_KEY),
)
TURNS = sa.Table(
    "turns",
    _META,
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
_SCHEMA_VERSION = sa.Table(
    "schema_version", _META, sa.Column("version", sa.Integer, nullable=False)
)
FIRST_VERSION = 1
"""The version of the schema that the tables above have without any of `STATEMENTS`."""
STATEMENTS: tuple[str, ...] = ()
"""What leads from the first schema to today's (`envs.common.migrations`), in SQL that SQLite and
PostgreSQL both know. Tables that are missing altogether are made as they are above."""


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
                _META.create_all(connection)
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
        expected = _own_schema(STATEMENTS)
        if {entry for entry in expected if entry[1] == _SCHEMA_VERSION.name} <= entries:
            # A newer archive may have more tables, so its version is looked at first.
            row = connection.execute(f"SELECT version FROM {_SCHEMA_VERSION.name}").fetchone()
            self._missing_statements(row[0] if row is not None else FIRST_VERSION)
        strange = strange_entry(entries, expected)
        if strange is not None:
            raise UnsafeDatabaseError(
                f"{self.file} is not an archive of games: it holds {strange[:40]!r}, which doesn't"
                " match procsnake's schema. Choose another --database"
            )

    def _migrate(self, connection: sa.Connection, *, is_new: bool) -> None:
        """Bring the tables up to date, and note the version that they have then."""
        version = connection.scalar(sa.select(_SCHEMA_VERSION.c.version)) or FIRST_VERSION
        lacking: Sequence[str] = ()
        if not is_new:
            lacking = self._missing_statements(version)
        for statement in lacking:
            connection.exec_driver_sql(statement)
        if is_new or lacking:
            today = FIRST_VERSION + len(STATEMENTS)
            connection.execute(sa.delete(_SCHEMA_VERSION))
            connection.execute(sa.insert(_SCHEMA_VERSION).values(version=today))

    def _missing_statements(self, version: int) -> Sequence[str]:
        """The statements that a database of this version needs. Raises `NewerDatabaseError`."""
        return missing(STATEMENTS, version, where=self._name, first_version=FIRST_VERSION)

    def write(self, batch: Sequence[GameRows], *, new_games_only: bool = False) -> None:
        """Add the rows of a batch, all or none; with `new_games_only`, only those of games that
        aren't stored yet.
        """
        by_game: dict[tuple[str, str, str], list[GameRows]] = {}
        for rows in batch:
            by_game.setdefault(rows.key, []).append(rows)
        with self._writing() as connection:
            # In one order for everybody, so that two processes on PostgreSQL don't wait for each
            # other.
            for key in sorted(by_game):
                if new_games_only and connection.execute(_select_key(key, GAMES.c.number)).first():
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
        turns, ends, cut = _news(connection, stored.number, batch)
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
        this_game = sa.update(GAMES).where(*(GAMES.c[name] == game[name] for name in _KEY))
        if connection.execute(this_game.values(_columns_after(new))).rowcount:
            return
        insert = self._insert(GAMES).values(**game, size=game_bytes(game))
        # Another process may have been faster.
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=_KEY, set_=_columns_after(dict(insert.excluded.items()))
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


def summary(connection: sa.Connection, game: Mapping[str, Any]) -> dict[str, Any]:
    """Return a game's figures as columns of `games`, worked out from its turns."""
    about = json.loads(game["game"])
    end = unpack(game["end"], stacked=True) if game["end"] is not None else None
    lines = read_lines(connection, game["number"])
    num_snakes = len(json.loads(game["names"]))
    last_turns = [line.turn for line in lines[-1:]]
    cause = None
    if end is not None:
        last_turns.append(end["turn"])
        if lines and game["you"] not in end["alive"]:
            cause = _cause(connection, game, about, lines)
    timeouts = not_played(
        lines,
        width=game["width"],
        height=game["height"],
        timeout_ms=about["timeout"],
        map_name=about["map"],
    )
    return {
        "turns": max(last_turns, default=0),
        "result": result(
            end, lines, you=game["you"], num_snakes=num_snakes, ruleset=about["ruleset"]["name"]
        ),
        "cause": cause,
        "timeouts": timeouts,
        "errors": sum(line.fallback is not None for line in lines),
        **percentiles([line.latency_ms for line in lines]),
    }


def read_lines(connection: sa.Connection, number: int) -> list[AnswerRow]:
    """Return a game's answers in order, without their boards."""
    query = (
        sa.select(*(TURNS.c[name] for name in AnswerRow._fields))
        .where(TURNS.c.number == number)
        .order_by(TURNS.c.turn)
    )
    return [AnswerRow(*row) for row in connection.execute(query)]


def _cause(
    connection: sa.Connection,
    game: Mapping[str, Any],
    about: Mapping[str, Any],
    lines: Sequence[AnswerRow],
) -> str:
    last = sa.select(TURNS.c.data).where(
        TURNS.c.number == game["number"], TURNS.c.turn == lines[-1].turn
    )
    board = unpack(connection.execute(last).scalar_one(), stacked=True)["board"]
    rules = about["ruleset"]
    damage = rules["settings"]["hazardDamagePerTurn"]
    moves = [line.move for line in reversed(lines[-2:])]
    return cause_of_death(board, game["you"], moves, ruleset=rules["name"], hazard_damage=damage)


class _News(NamedTuple):
    """The rows that a batch adds to a game, and from where on it begins the game anew."""

    turns: list[dict[str, Any]]
    """Rows of `turns` that aren't in the database yet."""
    ends: list[GameRows]
    cut: int | None
    """The turn from which on the database has an attempt that crashed; None if it has none."""


def _news(connection: sa.Connection, number: int, batch: Sequence[GameRows]) -> _News:
    """Return what a batch adds to the game with this number.

    A turn that comes again adds nothing. A turn with another board than before begins a new
    attempt."""
    stored = _stored_turns(
        connection, number, {rows.turn["turn"] for rows in batch if rows.turn is not None}
    )
    new: dict[int, dict[str, Any]] = {}
    ends: list[GameRows] = []
    cut: int | None = None
    for rows in batch:
        if rows.end is not None:
            ends.append(rows)
        if rows.turn is None:
            continue
        turn = rows.turn["turn"]
        before = new[turn]["data"] if turn in new else stored.get(turn)
        if before is not None and _is_another_board(before, rows.turn["data"]):
            cut = turn if cut is None else min(cut, turn)
            # The crashed attempt's turns from here on, and its end, count no more.
            new = {earlier: row for earlier, row in new.items() if earlier < turn}
            stored = {earlier: data for earlier, data in stored.items() if earlier < turn}
            ends = []
            before = None
        if before is None:
            new[turn] = {"number": number, **rows.turn}
    return _News(list(new.values()), ends, cut)


def _stored_turns(
    connection: sa.Connection, number: int, turns: Collection[int]
) -> dict[int, bytes]:
    """The packed data of those of a game's `turns` that are in the database."""
    if not turns:
        return {}
    query = sa.select(TURNS.c.turn, TURNS.c.data).where(
        TURNS.c.number == number, TURNS.c.turn.in_(turns)
    )
    return {row.turn: row.data for row in connection.execute(query)}


def _is_another_board(one: bytes, other: bytes) -> bool:
    """Whether two boards of one turn differ in their food, or in a snake that is on both.

    Of one request read twice, one board may show a snake that the other knows to be dead.
    """
    if one == other:
        return False
    board = unpack(one, stacked=True)["board"]
    other_board = unpack(other, stacked=True)["board"]
    if board["food"] != other_board["food"]:
        return True
    bodies = _bodies(board)
    other_bodies = _bodies(other_board)
    return any(
        bodies[snake] != other_bodies[snake] for snake in bodies.keys() & other_bodies.keys()
    )


def _bodies(board: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The body and the health of each snake, by its id."""
    return {snake["id"]: (snake["body"], snake["health"]) for snake in board["snakes"]}


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
            f"the database is {without_password(url)}; sqlite:///games.db and postgresql://… are"
            " known"
        )
    return parsed


@functools.cache
def _own_schema(statements: tuple[str, ...]) -> set[SchemaEntry]:
    """The entries of an archive's schema in SQLite, as it is created, and as the statements lead to
    it from an older one.
    """
    dialect = sqlite.dialect()
    creations: list[sa.schema.ExecutableDDLElement] = []
    for table in _META.sorted_tables:
        creations.append(sa.schema.CreateTable(table))
        creations.extend(map(sa.schema.CreateIndex, table.indexes))
    created = [str(creation.compile(dialect=dialect)) for creation in creations]
    return schema_after(created) | schema_after([*created, *statements])


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
