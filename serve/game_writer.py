"""The writer: a thread that puts events into the database, so that no answer ever waits for one."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from envs.battlesnake.webhook import WebhookError
from serve.game_rows import Event, Rows, rows_of
from serve.game_tables import Database

log = logging.getLogger(__name__)

MAX_INCOMING, MAX_HELD_BYTES, LARGE_REQUEST = 4000, 64 << 20, 64 << 10
_MAX_UNFINISHED_BYTES = 32 << 20
_BATCH, _PAUSE_S, _HOUSEKEEPING_S, _LOG_EVERY_S = 500, 0.05, 60.0, 60.0
_FIRST_RETRY_S, _LAST_RETRY_S = 0.2, 5.0
_JUMP_S, _DAY_S = 60.0, 86400.0


class Writer:
    """Takes events without waiting and writes them in batches; what the database refuses is held in memory and tried again.

    Held are at most `max_held_bytes`. Beyond, new turns are dropped (logged, counted in `lost`) and ends of games still
    taken, up to twice as much. If the database was lost and begins anew, the games that haven't ended are written again whole.
    Games older than `max_age_s` are forgotten, and the oldest ones while all take more than `max_bytes`.
    """

    def __init__(self, database: Database, *, max_bytes: int, max_age_s: float, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._database, self._max_bytes, self._max_age_s = database, max_bytes, max_age_s
        self._max_held, self._held_bytes = max_held_bytes, 0
        self._incoming: deque[Event] = deque()
        self._held: deque[Rows] = deque()
        self._unfinished = _Unfinished(_MAX_UNFINISHED_BYTES)
        self._wake = threading.Condition()
        self._give_up_at: float | None = None
        self._next_housekeeping, self._created = 0.0, 0
        self._log, self._clock = _Seldom(_LOG_EVERY_S), _WallClock()
        self.lost = 0
        """Events dropped for want of room or because no database could hold them."""
        self.problem = ""
        """Why the last attempt to write failed; empty if it didn't."""
        self.report: Callable[[int, int], None] = lambda waiting, lost: None
        """Is told after each attempt how many events wait and were lost."""
        self._thread = threading.Thread(target=self._run, name="game-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Events that are not in the database yet."""
        return len(self._incoming) + len(self._held)

    def put(self, event: Event) -> None:
        """Take an event. Never waits for the database, never raises."""
        rows = None
        if event.size > LARGE_REQUEST:
            rows = self._rows(event)  # a thousand of these, unread, would fill the memory
            if rows is None:
                return
        with self._wake:
            if rows is not None:
                self._hold(rows)
            elif len(self._incoming) < MAX_INCOMING * (2 if event.turn is None else 1):
                self._incoming.append(event)
            else:
                self._lose("too many requests at once")
            self._wake.notify_all()

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all that was put is written; whether it is."""
        with self._wake:
            return self._wake.wait_for(lambda: not self.waiting, timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write what is left, as far as that takes no longer than `timeout` seconds, and end the thread."""
        with self._wake:
            self._give_up_at = time.monotonic() + timeout
            self._wake.notify_all()
        self._thread.join(timeout + 1)
        if self.waiting:
            log.error("%d turns or ends of games were not saved: %s", self.waiting, self.problem or "no time was left")

    def _run(self) -> None:
        retry = _FIRST_RETRY_S
        while self._give_up_at is None or (self.waiting and time.monotonic() < self._give_up_at):
            try:
                self._write_held()
                self._keep_house()
            except Exception as error:  # Whatever happens to the database, games go on being taken.
                self._failed(error)
                self._take_for(retry)
                retry = min(_LAST_RETRY_S, 2 * retry)
            else:
                retry, self.problem = _FIRST_RETRY_S, ""
                self._take_for(_PAUSE_S)
            self.report(self.waiting, self.lost)

    def _take_for(self, seconds: float) -> None:
        """Work on what comes in for a while, and then on until something is to be written."""
        until = time.monotonic() + seconds
        while True:
            with self._wake:
                left = until - time.monotonic()
                if self._give_up_at is not None or (left <= 0 and (self.waiting or time.monotonic() > self._next_housekeeping)):
                    break
                self._wake.wait(max(left, 0.01) if left > 0 or self._held else 1.0)
            self._digest()
        self._digest()

    def _digest(self) -> None:
        """Turn events into rows, which are small."""
        while self._incoming:
            rows = self._rows(self._incoming[0])
            with self._wake:
                self._incoming.popleft()
                if rows is not None:
                    self._hold(rows)
                self._wake.notify_all()

    def _rows(self, event: Event) -> Rows | None:
        try:
            return rows_of(event)
        except WebhookError as error:
            log.debug("not recorded: %s", error)
        except Exception:
            log.exception("a request could not be recorded")
            self.lost += 1
        return None

    def _hold(self, rows: Rows) -> None:
        if self._held_bytes + rows.size > self._max_held * (1 if rows.end is None else 2):
            self._lose(self.problem)
            return
        self._held.append(rows)
        self._held_bytes += rows.size

    def _write_held(self) -> None:
        self._digest()
        while self._held:
            batch = [self._held[n] for n in range(min(_BATCH, len(self._held)))]
            try:
                self._database.write(batch)
            except Exception as error:
                if _is_trouble(error):
                    raise
                # It is one of these rows, not the database.
                batch = batch[:1]
                self._write_alone(batch[0])
            was, self._created = self._created, self._database.times_created
            if 0 < was < self._created:
                log.error("the database was lost; the games that are being played are written to the new one")
                self._hold_again(self._unfinished.take_all())
            self._unfinished.add(batch)
            self._drop(len(batch))

    def _write_alone(self, rows: Rows) -> None:
        try:
            self._database.write([rows])
        except Exception as error:
            if _is_trouble(error):
                raise
            log.exception("no database can hold what game %r sent", rows.key[0])
            self.lost += 1

    def _drop(self, count: int) -> None:
        with self._wake:
            for _ in range(count):
                self._held_bytes -= self._held.popleft().size
            self._wake.notify_all()

    def _hold_again(self, batch: list[Rows]) -> None:
        with self._wake:
            self._held.extend(batch)
            self._held_bytes += sum(rows.size for rows in batch)

    def _keep_house(self) -> None:
        if time.monotonic() < self._next_housekeeping:
            return
        self._next_housekeeping = time.monotonic() + _HOUSEKEEPING_S
        now, runs_evenly = self._clock.read()
        self._database.close_abandoned(now)
        self._database.forget(before=now - self._max_age_s if runs_evenly else 0.0, max_bytes=self._max_bytes)

    def _failed(self, error: Exception) -> None:
        self.problem = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        self._database.look_again()
        self._log.error("games can't be saved, turns wait in memory: %s", self.problem)

    def _lose(self, why: str) -> None:
        self.lost += 1
        self._log.error("turns are lost: %s", why)


class _WallClock:
    """The time, and whether to believe it: for a day after the clock has been set, nothing is deleted by its age."""

    def __init__(self) -> None:
        self._ahead, self._believed_from = time.time() - time.monotonic(), 0.0

    def read(self) -> tuple[float, bool]:
        now, since_boot = time.time(), time.monotonic()
        if abs(now - since_boot - self._ahead) > _JUMP_S:
            self._ahead, self._believed_from = now - since_boot, since_boot + _DAY_S
        return now, since_boot >= self._believed_from


class _Seldom:
    """Logs a kind of message at most once in `every_s` seconds."""

    def __init__(self, every_s: float) -> None:
        self._every_s, self._next = every_s, dict[str, float]()

    def error(self, message: str, why: str) -> None:
        now = time.monotonic()
        if now >= self._next.get(message, 0.0):
            self._next[message] = now + self._every_s
            log.error(message, why)


class _Unfinished:
    """The rows of the games that haven't ended, the least recently played games dropped beyond `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._games: OrderedDict[tuple[str, str, str], list[Rows]] = OrderedDict()
        self._max_bytes, self._bytes = max_bytes, 0

    def add(self, batch: list[Rows]) -> None:
        for rows in batch:
            self._games.setdefault(rows.key, []).append(rows)
            self._games.move_to_end(rows.key)
            self._bytes += rows.size
        for rows in batch:
            if rows.end is not None:
                self._remove(rows.key)
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._games)))

    def take_all(self) -> list[Rows]:
        everything = [rows for game in self._games.values() for rows in game]
        self._games.clear()
        self._bytes = 0
        return everything

    def _remove(self, key: tuple[str, str, str]) -> None:
        self._bytes -= sum(rows.size for rows in self._games.pop(key, []))


def _is_trouble(error: Exception) -> bool:
    """Whether the database is to blame, so that the same rows may pass later."""
    return isinstance(error, OSError) or (isinstance(error, DBAPIError) and not isinstance(error, DataError | IntegrityError))
