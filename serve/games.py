"""`GameStore`: the games that a server's snakes play, written behind its back and read by the viewer and by training."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from agents.agent import Decision
from envs.battlesnake.webhook import Turn
from serve.game_archive import DEFAULT_URL, GameArchive, GamesUnavailableError
from serve.game_rows import Event
from serve.game_writer import Writer

__all__ = ["DEFAULT_URL", "MAX_AGE_S", "MAX_BYTES", "GameArchive", "GameStore", "GamesUnavailableError"]

MAX_AGE_S, MAX_BYTES = 30 * 86400.0, 1 << 30


class GameStore(GameArchive):
    """An archive that is being written: one row a (game id, snake, `you`), one row a turn.

    `started`, `moved` and `ended` never wait and never raise (`game_writer.Writer`); they may be called twice, in any order,
    from many threads, and by several processes on one database. Games are kept for `max_age_s` seconds and up to
    `max_bytes` in all.
    """

    def __init__(self, url: str = DEFAULT_URL, *, max_bytes: int = MAX_BYTES, max_age_s: float = MAX_AGE_S) -> None:
        super().__init__(url)
        self.writer = Writer(self._database, max_bytes=max_bytes, max_age_s=max_age_s)

    def started(self, snake: str, turn: Turn, body: Mapping[str, Any], *, size: int = 0) -> None:
        """`/start` was received; `turn` is what was read from its `body`, which had `size` bytes."""
        self.writer.put(Event(snake, body, time.time(), turn, size=size))

    def moved(
        self, snake: str, turn: Turn, body: Mapping[str, Any], decision: Decision, *, latency_ms: float, size: int = 0
    ) -> None:
        """`/move` was answered with this decision, `latency_ms` after it arrived."""
        self.writer.put(Event(snake, body, time.time(), turn, decision, latency_ms, size))

    def ended(self, snake: str, body: Mapping[str, Any], *, size: int = 0) -> None:
        """`/end` was received. A body that doesn't tell which game ended is not recorded."""
        self.writer.put(Event(snake, body, time.time(), size=size))

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all is written; whether it is."""
        return self.writer.flush(timeout)

    def close(self) -> None:
        """Write what is left and close the database."""
        self.writer.close()
        self._database.close()
