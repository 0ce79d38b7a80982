"""Keeps the games of a match, such as a tournament, in a SQLite file, with one transaction per
game.

So a killed process loses only unfinished games.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import Any, Generic

import numpy as np

from agents.measure.tournament.settings import MAX_SEATS, Game, M, Match, Seat
from agents.registry import content_of
from envs.common.errors import ConfigError, ProcsnakeError
from envs.common.migrations import missing
from envs.common.strangers import own_files
from envs.common.strangers.bounded import inflate, parse_json
from envs.common.strangers.sqlite_files import (
    bound,
    refuse_companions,
    schema_after,
    schema_of,
    strange_entry,
)

STATEMENTS = (
    """
    CREATE TABLE tournament (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        version INTEGER NOT NULL,
        config TEXT NOT NULL)
    """,
    """
    CREATE TABLE game (
        round INTEGER NOT NULL,
        number INTEGER NOT NULL,
        seed INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        moves BLOB NOT NULL,
        PRIMARY KEY (round, number))
    """,
    """
    CREATE TABLE seat (
        round INTEGER NOT NULL,
        number INTEGER NOT NULL,
        slot INTEGER NOT NULL,
        player INTEGER NOT NULL,
        place INTEGER NOT NULL,
        cause TEXT NOT NULL,
        died INTEGER NOT NULL,
        length INTEGER NOT NULL,
        latency_ms REAL NOT NULL,
        slowest_ms REAL NOT NULL,
        failures INTEGER NOT NULL,
        failure TEXT NOT NULL,
        cpu_ms REAL NOT NULL,
        excused INTEGER NOT NULL,
        PRIMARY KEY (round, number, slot))
    """,
)
"""The statements that lead from an empty file to today's schema (`envs.common.migrations`)."""
_TABLE = "tournament"
_VERSION = 1
"""The version of `config`, the match in JSON."""
_SIGNATURE = "signature"
_KIND = "kind"
_CONTENTS = "contents"
_MAX_CONFIG = 1 << 20
_MAX_GAMES = 1_000_000
_MAX_MOVES = 1 << 24
_MAX_ALL_MOVES = 1 << 30
_MAX_TIME_MS = 1e9
_GAME_COLUMNS = "round, number, seed, turns, moves"
_SEAT_COLUMNS = ", ".join(one.name for one in fields(Seat))
"""A seat's columns, without those of its key. They have the names of the fields of `Seat`."""


class StoreError(ProcsnakeError):
    """A tournament's file can't be read or written, or is another kind of file."""


class OtherKindError(StoreError):
    """A file holds a match of another kind, such as a tuning."""


class Store(Generic[M]):
    """The games of one match, such as a tournament. Use it as a context manager, from one thread.

    A file with an older schema gets today's when it is opened. Raises `StoreError` for a
    file of another kind, and `NewerDatabaseError` for a file of a newer procsnake."""

    def __init__(self, path: str | os.PathLike[str], holds: type[M]) -> None:
        self.path = Path(path)
        self._holds = holds
        self._begun: tuple[M, str] | None = None
        refuse_companions(self.path)
        try:
            self._database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            try:
                bound(self._database)
                self._refuse_other_databases()
                self._database.execute("PRAGMA journal_mode = WAL")
                self._migrate()
            except (ProcsnakeError, sqlite3.Error):
                self._database.close()
                raise
        except sqlite3.Error as error:
            raise StoreError(
                f"{path} can't be opened as a {holds.kind}'s file: {error}. Choose another --store"
            ) from error

    def __enter__(self) -> Store[M]:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def _refuse_other_databases(self) -> None:
        """Raise `StoreError` unless the file has exactly the tables of its version, or none, as a
        new file.

        This is checked before anything is written."""
        schema = schema_of(self._database)
        if not schema:
            return
        version = self._schema_version()
        if any(name == _TABLE for _, name, _ in schema):
            # A newer store, which this refuses, may have more tables than ours.
            missing(STATEMENTS, version, where=self.path)
        strange = strange_entry(schema, schema_after(STATEMENTS[:version]))
        if strange is not None:
            raise StoreError(
                f"{self.path} is not a {self._holds.kind} file: it holds {strange[:40]!r}, which"
                " doesn't match procsnake's schema. Choose another --store"
            )

    def _migrate(self) -> None:
        if not missing(STATEMENTS, self._schema_version(), where=self.path):
            return
        with self._transaction():
            for statement in missing(STATEMENTS, self._schema_version(), where=self.path):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA user_version = {len(STATEMENTS)}")

    def _schema_version(self) -> int:
        return int(self._database.execute("PRAGMA user_version").fetchone()[0])

    def load(self) -> M | None:
        """Return the match in the file; None if the file is new.

        Raises `StoreError` if it is damaged, of another kind or of another form.
        """
        config = self._config()
        if config is None:
            return None
        kind = config.get(_KIND)
        if kind != self._holds.kind:
            raise OtherKindError(
                f"{self.path} holds a {kind}, not a {self._holds.kind}. Choose another --store"
            )
        with self._named_damage():
            return self._holds.from_dict(config)

    def is_own(self) -> bool:
        """Return whether the players were named on this machine
        (`envs.common.strangers.own_files`).
        """
        config = self._config()
        match = self.load()
        if config is None or match is None:
            return False
        return own_files.is_signed(_signed(match), str(config.get(_SIGNATURE, "")))

    def _config(self) -> dict[str, Any] | None:
        with self._named_damage():
            rows = self._database.execute(
                "SELECT version, length(config), substr(config, 1, ?) FROM tournament",
                (_MAX_CONFIG,),
            )
            row = rows.fetchone()
            if row is None:
                return None
            version, length, config = row
            if version != _VERSION:
                raise StoreError(
                    f"{self.path} has version {version}, this procsnake reads {_VERSION}. Start"
                    " a new file: --store"
                )
            if length > _MAX_CONFIG:
                raise ValueError(f"its description has {length} characters")
            return dict(parse_json(config))

    def begin(self, match: M) -> None:
        """Write this match into the file, or continue the one that is there. A match without games
        is replaced by another one.

        Digests of the players' contents, such as their rules and policies, are stored with the
        match. Once there are games, the digests stay those with which they were played
        (`refuse_changed`). Only the fields that `may_grow`, such as a tournament's rounds, may
        differ; others raise `ConfigError`. Raises `StoreError` if the file can't be written."""
        signature = own_files.sign(_signed(match))
        contents = _contents(match)
        with self._transaction():
            self.load()  # refuses a match of another kind, even one without games
            before = self._contents_before()
            other = self._differences(match)
            if other and self._has_games():
                raise ConfigError(
                    f"{self.path} holds another {match.kind}: {other} differ. To continue it,"
                    " leave out the players and these options; or choose another --store"
                )
            own = {_KIND: match.kind, _SIGNATURE: signature, _CONTENTS: {**contents, **before}}
            config = json.dumps({**match.to_dict(), **own})
            self._database.execute(
                "INSERT OR REPLACE INTO tournament (id, version, config) VALUES (1, ?, ?)",
                (_VERSION, config),
            )
        self._begun = match, config

    def refuse_changed(self, match: M) -> None:
        """Raise `ConfigError` if a player has changed since the games in the file were played.

        A player's rules, policy, evaluation or file of options can change under the same name. A
        player that can't be read, for example because it is gone, isn't checked."""
        before = self._contents_before()
        for spec, content in _contents(match).items():
            if before.get(spec, content) != content:
                raise ConfigError(
                    f"{self.path} has games of an earlier version of {spec}; its rules, policy,"
                    " evaluation or file of options have changed since. Choose another --store,"
                    " or restore the old version"
                )

    def _contents_before(self) -> dict[str, Any]:
        """The contents of the players when the games were played, by their specs; empty while there
        are not games.
        """
        before = (self._config() or {}).get(_CONTENTS)
        if isinstance(before, dict) and self._has_games():
            return before
        return {}

    def _has_games(self) -> bool:
        with self._named_damage():
            return self._database.execute("SELECT 1 FROM game").fetchone() is not None

    def _refuse_if_replaced(self) -> None:
        """Raise `StoreError` if another process has replaced our match by another one before ours
        had any games.
        """
        if self._begun is None:
            return
        match, config = self._begun
        same = self._database.execute("SELECT 1 FROM tournament WHERE config = ?", (config,))
        if same.fetchone():
            return
        other = self._differences(match)
        if other:
            raise StoreError(
                f"{self.path} now holds another {match.kind}: {other} differ. Another procsnake"
                " started it there in the meantime; choose another --store"
            )

    def _differences(self, match: M) -> str:
        """The fields in which the file's match differs from this one and mustn't, with commas; ""
        if there are none.
        """
        own = self.load()
        if own is None:
            return ""
        before = own.to_dict()
        now = match.to_dict()
        fields = [name for name in now if name not in match.may_grow]
        return ", ".join(name for name in fields if now[name] != before[name])

    def add(self, game: Game) -> None:
        """Write a finished game, all of it or nothing.

        Raises `StoreError` if the file holds the game already, because another process plays the
        same match into it; if another process has begun another match there; and if the file can't
        be written."""
        key = (game.round, game.number)
        seats = [(*key, slot, *astuple(seat)) for slot, seat in enumerate(game.seats)]
        places = ", ".join("?" * len(seats[0]))
        row = (*key, game.seed, game.turns, zlib.compress(game.moves.tobytes()))
        try:
            with self._transaction():
                self._refuse_if_replaced()
                self._database.execute(
                    f"INSERT INTO game ({_GAME_COLUMNS}) VALUES (?, ?, ?, ?, ?)", row
                )
                self._database.executemany(
                    f"INSERT INTO seat (round, number, slot, {_SEAT_COLUMNS}) VALUES ({places})",
                    seats,
                )
        except sqlite3.IntegrityError as error:
            raise StoreError(
                f"{self.path} holds game {game.number} of round {game.round} already: another"
                " procsnake plays the same match there. Wait for it to end, or choose another"
                " --store"
            ) from error

    def games(self) -> list[Game]:
        """Return all finished games in the order of the schedule. Raises `StoreError` if they are
        damaged.
        """
        match = self.load()
        if match is None:
            return []
        with self._named_damage():
            return [_checked(game, len(match.players)) for game in self._read_games()]

    def _read_games(self) -> Iterator[Game]:
        for table, most in (("game", _MAX_GAMES), ("seat", _MAX_GAMES * MAX_SEATS)):
            (count,) = self._database.execute(f"SELECT count(*) FROM {table}").fetchone()
            if count > most:
                raise ValueError(f"it holds {count} rows of {table!r}, and {most} are the most")

        seats: dict[tuple[int, int], list[Seat]] = {}
        for round_, number, *values in self._database.execute(
            f"SELECT round, number, {_SEAT_COLUMNS} FROM seat ORDER BY round, number, slot"
        ):
            seats.setdefault((round_, number), []).append(Seat(*values))

        # A stranger's file may unpack to more moves than there is memory for.
        room = _MAX_ALL_MOVES
        for round_, number, seed, turns, packed in self._database.execute(
            f"SELECT {_GAME_COLUMNS} FROM game ORDER BY round, number"
        ):
            own_seats = tuple(seats[round_, number])
            unpacked = inflate(packed, min(_MAX_MOVES, room))
            room -= len(unpacked)
            moves = np.frombuffer(unpacked, np.int8).reshape(-1, len(own_seats))
            yield Game(round_, number, seed, turns, own_seats, moves)

    @contextmanager
    def _named_damage(self) -> Iterator[None]:
        """Raise `StoreError` for rows that procsnake hasn't written so: cut off, damaged, or made
        to harm.
        """
        try:
            yield
        except (
            sqlite3.Error,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OverflowError,
        ) as error:
            what = f"{type(error).__name__}: {error}"
            raise StoreError(
                f"{self.path} is damaged, or no tournament's file ({what}). Choose another --store"
            ) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all or nothing. Raises `StoreError` for a full disk, and for a lock that another
        process doesn't give back.
        """
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")
        except BaseException as error:
            # If the disk is full, SQLite has rolled the transaction back itself.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
                raise StoreError(
                    f"{self.path} can't be written: {error}. Its games are kept; fix that and"
                    " continue, or choose another --store"
                ) from error
            raise


def _contents(match: Match) -> dict[str, str]:
    """The present contents of the players by their specs, without players that can't be read."""
    contents = {}
    for player in match.players:
        with suppress(ProcsnakeError, OSError, ValueError):
            if not player.is_remote:
                contents[player.spec] = content_of(player.spec)
    return contents


def _signed(match: Match) -> bytes:
    return json.dumps([asdict(player) for player in match.players]).encode()


def _checked(game: Game, num_players: int) -> Game:
    """Return the game. Raises `ValueError` for one that can't have been played."""
    seats = game.seats
    moves = game.moves
    numbers = [game.round, game.number, game.seed, game.turns]
    for seat in seats:
        numbers += [seat.player, seat.place, seat.died, seat.length, seat.failures, seat.excused]
        if not (isinstance(seat.cause, str) and isinstance(seat.failure, str)):
            raise ValueError("a seat's cause of death or failure is not text")
        times = (seat.latency_ms, seat.slowest_ms, seat.cpu_ms)
        if not all(isinstance(time, int | float) and 0 <= time <= _MAX_TIME_MS for time in times):
            raise ValueError("a seat's times are impossible for a move")
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers):
        raise ValueError(f"game {game.round}/{game.number} has impossible numbers")
    if not 2 <= len(seats) <= MAX_SEATS or not all(seat.player < num_players for seat in seats):
        raise ValueError(
            f"game {game.round}/{game.number} has {len(seats)} seats, or players that don't take"
            " part"
        )
    if len(moves) != game.turns or (moves.size and not (moves.min() >= -1 and moves.max() <= 3)):
        raise ValueError(
            f"game {game.round}/{game.number} has {len(moves)} moves for {game.turns} turns, or"
            " moves that don't exist"
        )
    if not any(seat.place == 1 for seat in seats):
        raise ValueError(f"game {game.round}/{game.number} has nobody in first place")
    return game
