"""The games of a match, such as a tournament, on disk: one SQLite file with one transaction per
game.

So a kill loses only unfinished games.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic

import numpy as np

from agents.measure.tournament.settings import MAX_SEATS, Game, M, Match, Seat, Tournament
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

# The first stores had these tables but no version, hence IF NOT EXISTS.
STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS tournament (
    id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, config TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS game (
    round INTEGER NOT NULL, number INTEGER NOT NULL, seed INTEGER NOT NULL, turns INTEGER NOT NULL, moves BLOB NOT NULL,
    PRIMARY KEY (round, number))""",
    """CREATE TABLE IF NOT EXISTS seat (
    round INTEGER NOT NULL, number INTEGER NOT NULL, slot INTEGER NOT NULL, player INTEGER NOT NULL, place INTEGER NOT NULL,
    cause TEXT NOT NULL, died INTEGER NOT NULL, length INTEGER NOT NULL, latency_ms REAL NOT NULL, slowest_ms REAL NOT NULL,
    failures INTEGER NOT NULL, failure TEXT NOT NULL, PRIMARY KEY (round, number, slot))""",
    "ALTER TABLE seat ADD COLUMN cpu_ms REAL NOT NULL DEFAULT 0",
    "ALTER TABLE seat ADD COLUMN excused INTEGER NOT NULL DEFAULT 0",
)
"""The statements that lead from an empty file to today's schema (`envs.common.migrations`)."""
_TABLE = "tournament"
_FIRST_VERSION = 3
"""The statements that the first stores have had, which had no version yet."""
_VERSION = 1
_SIGNATURE = "signature"
_KIND = "kind"
_CONTENTS = "contents"
_MAX_CONFIG = 1 << 20
_MAX_GAMES = 1_000_000
_MAX_MOVES = 1 << 24
_MAX_ALL_MOVES = 1 << 30
_MAX_TIME_MS = 1e9
_GAME_COLUMNS = "round, number, seed, turns, moves"
_SEAT_COLUMNS = (
    "player, place, cause, died, length, latency_ms, slowest_ms, failures, failure, cpu_ms, excused"
)


class StoreError(ProcsnakeError):
    """A tournament's file can't be read or written, or is no such file."""


class Store(Generic[M]):
    """The games of one match, such as a tournament. Use it as a context manager, from one thread.

    A file of an older procsnake gets today's schema when it is opened. Raises `StoreError` for a
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
        """Before anything is written: a store has exactly its version's tables, and a new file has
        none.
        """
        found = schema_of(self._database)
        if not found:
            return
        version = self._schema_version()
        if any(name == _TABLE for _, name, _ in found):
            # A newer store may have more tables.
            missing(STATEMENTS, version, where=self.path)
        strange = strange_entry(found, schema_after(STATEMENTS[: max(version, _FIRST_VERSION)]))
        if strange is not None:
            raise StoreError(
                f"{self.path} is no {self._holds.kind}'s file: it holds {strange[:40]!r}, which is"
                " not as procsnake makes it. Choose another --store"
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
        kind = config.get(_KIND, Tournament.kind)
        if kind != self._holds.kind:
            raise StoreError(
                f"{self.path} holds a {kind}, not a {self._holds.kind}. Choose another --store"
            )
        with self._named_damage():
            return self._holds.from_dict(config)

    def is_own(self) -> bool:
        """Whether this machine named the players (`envs.common.strangers.own_files`)."""
        config = self._config()
        kept = self.load()
        return kept is not None and own_files.is_signed(
            _signed(kept), str((config or {}).get(_SIGNATURE, ""))
        )

    def _config(self) -> dict[str, Any] | None:
        with self._named_damage():
            row = self._database.execute(
                "SELECT version, length(config), substr(config, 1, ?) FROM tournament",
                (_MAX_CONFIG,),
            )
            found = row.fetchone()
            if found is None:
                return None
            version, length, config = found
            if version != _VERSION:
                raise StoreError(
                    f"{self.path} has version {version}, this procsnake reads {_VERSION}. Begin a"
                    " new file: --store"
                )
            if length > _MAX_CONFIG:
                raise ValueError(f"its description has {length} characters")
            return dict(parse_json(config))

    def begin(self, match: M) -> None:
        """Write this match into the file, or continue the one that is there. One without games
        gives way to another.

        With it, the file keeps what the players are, and once there are games what they were then
        (`refuse_changed`). Only the fields that `may_grow`, as a tournament's rounds, may differ;
        others raise `ConfigError`. Raises `StoreError` if the file can't be written."""
        signature = own_files.sign(_signed(match))
        contents = _contents(match)
        with self._transaction():
            kept = self.load()
            before = self._contents_before()
            if kept is not None and self._has_games() and (other := _differences(kept, match)):
                raise ConfigError(
                    f"{self.path} holds another {match.kind}: {other} differ. Name neither players"
                    " nor these to go on with it, or choose another --store"
                )
            own = {_KIND: match.kind, _SIGNATURE: signature, _CONTENTS: {**contents, **before}}
            config = json.dumps({**match.to_dict(), **own})
            self._database.execute(
                "INSERT OR REPLACE INTO tournament (id, version, config) VALUES (1, ?, ?)",
                (_VERSION, config),
            )
        self._begun = match, config

    def refuse_changed(self, match: M) -> None:
        """Raise `ConfigError` if a player isn't any more what it was as the games in the file were
        played.

        Under the same name, its rules, policy, evaluation or file of options can become others. A
        player that can't be read, as one that is gone, is passed over."""
        before = self._contents_before()
        changed = [
            spec
            for spec, content in _contents(match).items()
            if before.get(spec, content) != content
        ]
        if changed:
            raise ConfigError(
                f"{self.path} has games of {changed[0]} as it was before; its rules, policy,"
                " evaluation or file of options have changed since. Choose another --store, or"
                " bring back what was there"
            )

    def _contents_before(self) -> dict[str, Any]:
        """What the players were as the games were played, by their specs; nothing where no games
        are, or older versions'.
        """
        before = (self._config() or {}).get(_CONTENTS)
        if isinstance(before, dict) and self._has_games():
            return before
        return {}

    def _has_games(self) -> bool:
        with self._named_damage():
            return self._database.execute("SELECT 1 FROM game").fetchone() is not None

    def _refuse_if_replaced(self) -> None:
        """Raise `StoreError` if another process has begun another match in the place of ours, which
        had no games yet.
        """
        if self._begun is None:
            return
        match, config = self._begun
        if self._database.execute(
            "SELECT 1 FROM tournament WHERE config = ?", (config,)
        ).fetchone():
            return
        kept = self.load()
        if kept is not None and (other := _differences(kept, match)):
            raise StoreError(
                f"{self.path} holds another {match.kind} by now: {other} differ. Another procsnake"
                " has begun it there before a game of this one had ended; choose another --store"
            )

    def add(self, game: Game) -> None:
        """Write a finished game, all of it or nothing.

        Raises `StoreError` if the file holds it already, because another process plays the same
        match into it, if another one has begun another match there, and if the file can't be
        written."""
        key = (game.round, game.number)
        seats = [
            (
                *key,
                slot,
                s.player,
                s.place,
                s.cause,
                s.died,
                s.length,
                s.latency_ms,
                s.slowest_ms,
                s.failures,
                s.failure,
                s.cpu_ms,
                s.excused,
            )
            for slot, s in enumerate(game.seats)
        ]
        row = (*key, game.seed, game.turns, zlib.compress(game.moves.tobytes()))
        try:
            with self._transaction():
                self._refuse_if_replaced()
                self._database.execute(
                    f"INSERT INTO game ({_GAME_COLUMNS}) VALUES (?, ?, ?, ?, ?)", row
                )
                self._database.executemany(
                    f"INSERT INTO seat (round, number, slot, {_SEAT_COLUMNS}) VALUES"
                    f" ({', '.join('?' * 14)})",
                    seats,
                )
        except sqlite3.IntegrityError as error:
            raise StoreError(
                f"{self.path} holds game {game.number} of round {game.round} already: another"
                " procsnake plays the same match into it. Let that one end, or choose another"
                " --store"
            ) from error

    def games(self) -> list[Game]:
        """Return all finished games in the order of the schedule. Raises `StoreError` if they are
        damaged.
        """
        kept = self.load()
        with self._named_damage():
            if kept is None:
                return []
            return [_checked(game, len(kept.players)) for game in self._read_games()]

    def _read_games(self) -> Iterator[Game]:
        seats: dict[tuple[int, int], list[Seat]] = {}
        for table, most in (("game", _MAX_GAMES), ("seat", _MAX_GAMES * MAX_SEATS)):
            (count,) = self._database.execute(f"SELECT count(*) FROM {table}").fetchone()
            if count > most:
                raise ValueError(f"it holds {count} rows of {table!r}, and {most} are the most")
        room = _MAX_ALL_MOVES
        for round_, number, *values in self._database.execute(
            f"SELECT round, number, {_SEAT_COLUMNS} FROM seat ORDER BY round, number, slot"
        ):
            seats.setdefault((round_, number), []).append(Seat(*values))
        for round_, number, seed, turns, packed in self._database.execute(
            f"SELECT {_GAME_COLUMNS} FROM game ORDER BY round, number"
        ):
            taken = seats[round_, number]
            moves = np.frombuffer(inflate(packed, min(_MAX_MOVES, room)), np.int8).reshape(
                -1, len(taken)
            )
            room -= moves.nbytes
            yield Game(round_, number, seed, turns, tuple(taken), moves)

    @contextmanager
    def _named_damage(self) -> Iterator[None]:
        """Rows that no tournament has written: cut off, damaged, or made to harm."""
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
        """Write all or nothing. A full disk, or a lock that another process doesn't give back,
        becomes a `StoreError`.
        """
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")
        except BaseException as error:
            # Where the disk is full, SQLite has rolled it back itself.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
                raise StoreError(
                    f"{self.path} can't be written: {error}. The games in it are kept; mend that"
                    " and go on with it, or choose another --store"
                ) from error
            raise


def _differences(kept: Match, match: Match) -> str:
    """The fields that two matches may not differ in and do, with commas."""
    before = kept.to_dict()
    now = match.to_dict()
    return ", ".join(
        name for name in now if name not in match.may_grow and now[name] != before[name]
    )


def _contents(match: Match) -> dict[str, str]:
    """What the players are now, by their specs, as far as it can be told."""
    found = {}
    for player in match.players:
        with suppress(ProcsnakeError, OSError, ValueError):
            if not player.is_remote:
                found[player.spec] = content_of(player.spec)
    return found


def _signed(match: Match) -> bytes:
    return json.dumps([asdict(player) for player in match.players]).encode()


def _checked(game: Game, num_players: int) -> Game:
    """Raises `ValueError` for a game that can't have been played."""
    seats = game.seats
    moves = game.moves
    numbers = [game.round, game.number, game.seed, game.turns]
    for seat in seats:
        numbers += [seat.player, seat.place, seat.died, seat.length, seat.failures, seat.excused]
        if not (isinstance(seat.cause, str) and isinstance(seat.failure, str)):
            raise ValueError("the seats' texts are none")
        times = (seat.latency_ms, seat.slowest_ms, seat.cpu_ms)
        if not all(isinstance(time, int | float) and 0 <= time <= _MAX_TIME_MS for time in times):
            raise ValueError("the seats' times are none that a move takes")
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers):
        raise ValueError(f"game {game.round}/{game.number} has numbers that no game has")
    if not 2 <= len(seats) <= MAX_SEATS or not all(seat.player < num_players for seat in seats):
        raise ValueError(
            f"game {game.round}/{game.number} has {len(seats)} seats, or players that don't take"
            " part"
        )
    if len(moves) != game.turns or (moves.size and not (moves.min() >= -1 and moves.max() <= 3)):
        raise ValueError(
            f"game {game.round}/{game.number} has {len(moves)} moves for {game.turns} turns, or"
            " such as there are none"
        )
    if not any(seat.place == 1 for seat in seats):
        raise ValueError(f"game {game.round}/{game.number} has nobody in the first place")
    return game
