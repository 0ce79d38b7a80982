"""A tournament on disk: one SQLite file, a transaction a game, so that a kill at any moment loses only games under way."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from agents.tournament.rules import Game, Seat, Tournament
from envs.errors import ConfigError, ProcsnakeError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tournament (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, config TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS game (
    round INTEGER NOT NULL, number INTEGER NOT NULL, seed INTEGER NOT NULL, turns INTEGER NOT NULL, moves BLOB NOT NULL,
    PRIMARY KEY (round, number));
CREATE TABLE IF NOT EXISTS seat (
    round INTEGER NOT NULL, number INTEGER NOT NULL, slot INTEGER NOT NULL, player INTEGER NOT NULL, place INTEGER NOT NULL,
    cause TEXT NOT NULL, died INTEGER NOT NULL, length INTEGER NOT NULL, latency_ms REAL NOT NULL, slowest_ms REAL NOT NULL,
    failures INTEGER NOT NULL, failure TEXT NOT NULL, PRIMARY KEY (round, number, slot));
"""
_VERSION = 1
_SEAT_COLUMNS = "player, place, cause, died, length, latency_ms, slowest_ms, failures, failure"


class StoreError(ProcsnakeError):
    """A tournament's file that can't be read or written, or that is no such file."""


class Store:
    """The games of one tournament. Use it as a context manager, from one thread."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise StoreError(f"{path} can't be opened as a tournament's file: {error}. Choose another --store") from error

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def load(self) -> Tournament | None:
        """The tournament that is kept here; None if the file is new. Raises `StoreError` if it is of another make."""
        row = self._database.execute("SELECT version, config FROM tournament").fetchone()
        if row is None:
            return None
        if row[0] != _VERSION:
            raise StoreError(f"{self.path} has version {row[0]}, this procsnake reads {_VERSION}. Begin a new file: --store")
        return Tournament.from_dict(json.loads(row[1]))

    def begin(self, tournament: Tournament) -> None:
        """Keep this tournament here, or go on with it: more rounds than before are welcome, all else has to be the same."""
        kept = self.load()
        if kept is not None and replace(kept, rounds=1) != replace(tournament, rounds=1):
            before, now = kept.to_dict(), tournament.to_dict()
            other = ", ".join(name for name in now if name != "rounds" and now[name] != before[name])
            raise ConfigError(
                f"{self.path} holds another tournament: {other} differ. Go on with it by naming no players, or choose another"
                " --store"
            )
        with self._transaction():
            config = json.dumps(tournament.to_dict())
            self._database.execute("INSERT OR REPLACE INTO tournament VALUES (1, ?, ?)", (_VERSION, config))

    def add(self, game: Game) -> None:
        """Keep a finished game, all of it or nothing."""
        key = (game.round, game.number)
        seats = [
            (*key, slot, s.player, s.place, s.cause, s.died, s.length, s.latency_ms, s.slowest_ms, s.failures, s.failure)
            for slot, s in enumerate(game.seats)
        ]
        with self._transaction():
            row = (*key, game.seed, game.turns, zlib.compress(game.moves.tobytes()))
            self._database.execute("INSERT INTO game VALUES (?, ?, ?, ?, ?)", row)
            self._database.executemany(f"INSERT INTO seat VALUES ({', '.join('?' * 12)})", seats)

    def games(self) -> list[Game]:
        """All finished games in the order of the schedule."""
        seats: dict[tuple[int, int], list[Seat]] = {}
        for round_, number, *values in self._database.execute(
            f"SELECT round, number, {_SEAT_COLUMNS} FROM seat ORDER BY round, number, slot"
        ):
            seats.setdefault((round_, number), []).append(Seat(*values))
        games = []
        for round_, number, seed, turns, packed in self._database.execute("SELECT * FROM game ORDER BY round, number"):
            taken = seats[round_, number]
            moves = np.frombuffer(zlib.decompress(packed), np.int8).reshape(-1, len(taken))
            games.append(Game(round_, number, seed, turns, tuple(taken), moves))
        return games

    def _transaction(self) -> _Transaction:
        return _Transaction(self._database)


class _Transaction:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")
