"""`GameStore`: the games that a server's snakes play. A thread writes them; the viewer and training
read them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from agents.agent import Decision
from envs.battlesnake.webhook import Turn
from serve.archive.reader import GameArchive, GamesUnavailableError
from serve.archive.rows import Event
from serve.archive.writer import Writer

__all__ = ["MAX_AGE_S", "MAX_BYTES", "GameArchive", "GameStore", "GamesUnavailableError"]

MAX_AGE_S = 30 * 86400.0
MAX_BYTES = 1 << 30
END_S = 1.0
"""How long `/end` waits for the database at most, in seconds."""
# Threads that wait for the database can't answer moves.
_MAX_ENDING = 8


class GameStore(GameArchive):
    """An archive that is being written: one row per (game id, snake, `you`), and one row per turn.

    `started` and `moved` never wait, and none of the methods raises
    (`serve.archive.writer.Writer`). They may be called twice, in any order, from many threads, and
    by several processes on one database. Games are kept for `max_age_s` seconds, and up to
    `max_bytes` in all."""

    def __init__(
        self, url: str, *, max_bytes: int = MAX_BYTES, max_age_s: float = MAX_AGE_S
    ) -> None:
        super().__init__(url)
        self._may_wait = threading.BoundedSemaphore(_MAX_ENDING)
        self.writer = Writer(self._database, max_bytes=max_bytes, max_age_s=max_age_s)

    def started(self, snake: str, turn: Turn, body: Mapping[str, Any], *, size: int = 0) -> None:
        """Record that `/start` was received. `turn` is its parsed `body` of `size` bytes."""
        self.writer.put(Event(snake, body, time.time(), turn, size=size))

    def moved(
        self,
        snake: str,
        turn: Turn,
        body: Mapping[str, Any],
        decision: Decision,
        *,
        latency_ms: float,
        size: int = 0,
    ) -> None:
        """Note that `/move` was answered with this decision, `latency_ms` after it arrived."""
        self.writer.put(Event(snake, body, time.time(), turn, decision, latency_ms, size=size))

    def ended(
        self, snake: str, body: Mapping[str, Any], final: Turn | None, *, size: int = 0
    ) -> None:
        """Note that `/end` was received. `final` is what was read from its `body`; None if nobody
        lives on that board, or if it can't be read. A body without the game's id is not recorded.

        It returns when the end and everything before it are in the database, so that this process
        may be killed once the engine has the answer. It waits at most `END_S` seconds, and not at
        all if the database is failing or other calls already wait."""
        number = self.writer.put(
            Event(snake, body, time.time(), final=final, size=size), urgent=True
        )
        if not self.writer.problem and self._may_wait.acquire(blocking=False):
            try:
                self.writer.wait(number, END_S)
            finally:
                self._may_wait.release()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything is written. Returns whether it is."""
        return self.writer.flush(timeout)

    def close(self) -> None:
        """Write what is left and close the database."""
        self.writer.close()
        self._database.close()
