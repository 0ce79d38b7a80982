"""A server's memory of running games between requests: which snakes live, and how far away the
engine is.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from envs.battlesnake.plain.living import LifeHistory
from envs.battlesnake.webhook import MAX_TEXT, Turn, read_end_request, read_move_request
from serve.timing.margins import GameMargin

GameKey = tuple[str, str]
"""The game's id and `you.id`: strangers can send the id of a game that isn't theirs."""


@dataclass
class GameRecord:
    """The memory of one game of one snake, which is forgotten as a whole."""

    turn: int
    """The turn of the latest request."""
    lives: LifeHistory = field(default_factory=LifeHistory)
    """Who lived on the latest board."""
    margin: GameMargin = field(default_factory=GameMargin)
    """How far away the engine is."""


@dataclass
class _Entry:
    """A record, when it was used last, and the lock of whoever uses it."""

    record: GameRecord
    used: float
    lock: threading.Lock = field(default_factory=threading.Lock)


class GameMemory:
    """The games that a process plays. Any number of threads may use it.

    A game is forgotten at `/start`, if its turn goes back (a crashed runner replays it from turn 0
    under the same id), after `max_idle_s` seconds without a request, and once `max_games` others
    were asked for later. A process starts with no memory: a second worker, or a Lambda that was
    frozen, reads the next request of a game as if it were the only one. `clock` counts seconds,
    never back."""

    def __init__(
        self,
        *,
        max_games: int = 1024,
        max_idle_s: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_games = max_games
        self._max_idle_s = max_idle_s
        self._clock = clock
        self._games: OrderedDict[GameKey, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._games)

    def start(self, body: Mapping[str, Any]) -> Turn:
        """Read the body of `/start` and forget any memory of its game. Raises what
        `read_move_request` raises.
        """
        turn = read_move_request(body)
        with self._lock:
            self._games.pop((turn.game_id, turn.ids[turn.you]), None)
        return turn

    def read_move(self, body: Mapping[str, Any]) -> Turn:
        """Read the body of `/move`. Which snakes live is exact if the turn before is remembered.
        Raises what `read_move_request` raises.
        """
        key = _key(body)
        if key is None:
            return read_move_request(body)  # It names what is wrong.
        with self.record(*key) as record:
            return read_move_request(body, history=record.lives)

    def read_end(self, body: Mapping[str, Any]) -> Turn | None:
        """Read the body of `/end` as `read_end_request` does, using the game's last turns."""
        key = _key(body)
        if key is None:
            return read_end_request(body)
        with self.record(*key) as record:
            return read_end_request(body, history=record.lives)

    @contextmanager
    def record(self, game: GameKey, turn: int) -> Iterator[GameRecord]:
        """Lend the record of a game for a request of this turn, exclusively.

        It is a new one if the game is unknown or was already past this turn.
        """
        entry = self._entry(game, turn)
        with entry.lock:
            yield entry.record
            entry.record.turn = max(turn, entry.record.turn)

    def _entry(self, game: GameKey, turn: int) -> _Entry:
        now = self._clock()
        with self._lock:
            entry = self._games.get(game)
            if entry is None or turn < entry.record.turn:
                entry = self._games[game] = _Entry(GameRecord(turn), now)
            entry.used = now
            self._games.move_to_end(game)
            while (
                len(self._games) > self._max_games
                or next(iter(self._games.values())).used < now - self._max_idle_s
            ):
                self._games.popitem(last=False)
            return entry


def _key(body: Mapping[str, Any]) -> tuple[GameKey, int] | None:
    """A request's game and turn; None for a malformed request."""
    game_id = _id(body.get("game"))
    your_id = _id(body.get("you"))
    turn = body.get("turn", 0)
    if game_id is None or your_id is None or type(turn) is not int:
        return None
    return (game_id, your_id), turn


def _id(parent: Any) -> str | None:
    value = parent.get("id") if isinstance(parent, Mapping) else None
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        return value
    return None
