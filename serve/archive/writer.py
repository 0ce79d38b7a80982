"""The writer: a thread that puts events into the database, so that no answer ever waits for the
database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import chain

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from envs.battlesnake.webhook import WebhookError
from envs.common.errors import ProcsnakeError
from serve.archive.database import Database
from serve.archive.rows import Event, GameRows, rows_of
from serve.monitoring.logs import Seldom

log = logging.getLogger(__name__)

MAX_INCOMING = 4000
MAX_INCOMING_BYTES = 64 << 20
MAX_HELD_BYTES = 64 << 20
LARGE_REQUEST = 64 << 10
_PARSED = 10
"""How many times its size a request takes in memory once it is read."""
_MAX_UNFINISHED_BYTES = 32 << 20
_BATCH = 500
_PAUSE_S = 0.05
_HOUSEKEEPING_S = 60.0
_LEAST_WAIT_S = 0.01
_IDLE_WAIT_S = 1.0
_FIRST_RETRY_S = 0.2
_LAST_RETRY_S = 5.0
_BATCH_BYTES = 1 << 20
_HOUSEKEEPING_SHARE = 8
_LEAST_HOUSEKEEPING = 1 << 18
_JUMP_S = 60.0
_DAY_S = 86400.0


class Writer:
    """Takes events without waiting, and writes them in batches. Failed batches are held in memory
    and tried again.

    At most `max_held_bytes` are held. Beyond that, new turns are dropped, logged and counted in
    `lost`; ends of games are still taken, up to twice as much. If a new database replaces a lost
    one, games that haven't ended are written again in full. Games older than `max_age_s` are
    deleted, and the oldest ones before all games take more than `max_bytes`."""

    def __init__(
        self,
        database: Database,
        *,
        max_bytes: int,
        max_age_s: float,
        max_held_bytes: int = MAX_HELD_BYTES,
    ) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._max_held = max_held_bytes
        self._held_bytes = 0
        self._incoming: deque[Event | GameRows] = deque()
        self._incoming_bytes = 0
        self._taken = 0
        self._done = 0
        self._is_urgent = False
        self._held: deque[GameRows] = deque()
        self._unfinished = _Unfinished(_MAX_UNFINISHED_BYTES)
        self._wake = threading.Condition()
        self._give_up_at: float | None = None
        self._next_housekeeping = 0.0
        self._unchecked_bytes = 0
        self._created = 0
        self._seldom = Seldom()
        self._clock = _WallClock()
        self.lost = 0
        """The number of events that were dropped for want of room, or because no database could
        hold them.
        """
        self.problem = ""
        """Why the last attempt to write failed; empty if it succeeded."""
        self.report: Callable[[int, int], None] = lambda waiting, lost: None
        """A function that is called after each attempt with the numbers of waiting and lost
        events.
        """
        self._thread = threading.Thread(target=self._run, name="game-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of events that are not in the database yet."""
        return len(self._incoming) + len(self._held)

    def put(self, event: Event, *, urgent: bool = False) -> int:
        """Take an event, and return the number for which to `wait`. It never waits for the database
        and never raises.

        An `urgent` event is written at once, without waiting to be batched."""
        item: Event | GameRows | None = event
        room = MAX_INCOMING_BYTES // 2 - self._incoming_bytes
        if event.size > LARGE_REQUEST or _in_memory(event) > room:
            item = self._rows(event)  # a thousand of these, unread, would fill the memory
        if item is None:
            return self._taken
        more = 2 if event.turn is None else 1  # The end of a game has twice the room.
        with self._wake:
            size = self._incoming_bytes + _in_memory(item)
            if len(self._incoming) >= MAX_INCOMING * more or size > MAX_INCOMING_BYTES * more:
                self._lose("too many requests at once")
                return self._taken
            self._incoming.append(item)
            self._incoming_bytes = size
            self._taken += 1
            self._is_urgent |= urgent
            self._wake.notify_all()
            return self._taken

    def wait(self, number: int, timeout: float) -> bool:
        """Wait until the event with this number and all before it are written. Returns whether they
        are.
        """
        with self._wake:
            return self._wake.wait_for(lambda: self._done >= number, timeout)

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything that was put is written. Returns whether it is."""
        return self.wait(self._taken, timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write what is left, for at most `timeout` seconds, and end the thread."""
        with self._wake:
            self._give_up_at = time.monotonic() + timeout
            self._wake.notify_all()
        self._thread.join(timeout + 1)
        if self.waiting:
            log.error(
                "%d turns or ends of games were not saved: %s",
                self.waiting,
                self.problem or "no time was left",
            )

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
                retry = _FIRST_RETRY_S
                self.problem = ""
                self.report(self.waiting, self.lost)
                self._take_for(_PAUSE_S)
        self.report(self.waiting, self.lost)

    def _take_for(self, seconds: float) -> None:
        """Work on what comes in for a while, and then on until something is to be written."""
        until = time.monotonic() + seconds
        while True:
            with self._wake:
                rest = until - time.monotonic()
                if self._is_urgent and not self.problem:
                    rest = 0.0
                has_work = self.waiting or time.monotonic() > self._next_housekeeping
                if self._give_up_at is not None or (rest <= 0 and has_work):
                    break
                self._is_urgent = False
                if rest > 0 or self._held:
                    self._wake.wait(max(rest, _LEAST_WAIT_S))
                else:
                    self._wake.wait(_IDLE_WAIT_S)
            self._digest()
        self._digest()

    def _digest(self) -> None:
        """Turn events into rows, which are small."""
        while self._incoming:
            item = self._incoming[0]
            if isinstance(item, GameRows):
                rows: GameRows | None = item
            else:
                rows = self._rows(item)
            with self._wake:
                self._incoming.popleft()
                self._incoming_bytes -= _in_memory(item)
                if rows is None or not self._hold(rows):
                    self._done += 1
                self._wake.notify_all()
        self.report(self.waiting, self.lost)

    def _rows(self, event: Event) -> GameRows | None:
        try:
            return rows_of(event)
        except WebhookError as error:
            log.debug("not recorded: %s", error)
        except Exception as error:
            if self._seldom.allows(f"unread {type(error).__name__}"):
                log.exception("a request could not be recorded")
            self.lost += 1
        return None

    def _hold(self, rows: GameRows) -> bool:
        room = self._max_held if rows.end is None else 2 * self._max_held
        if self._held_bytes + rows.size > room:
            self._lose(self.problem)
            return False
        self._held.append(rows)
        self._held_bytes += rows.size
        return True

    def _write_held(self) -> None:
        """Write everything that is held, batch by batch. Raises what says that the database is in
        trouble; the batch is then held on.
        """
        self._is_urgent = False
        self._digest()
        while self._held:
            batch = self._next_batch()
            try:
                self._database.write(batch)
            except Exception as error:
                if _is_trouble(error):
                    raise
                # It is one of these rows, not the database.
                batch = batch[:1]
                self._write_alone(batch[0])
            was = self._created
            self._created = self._database.times_created
            if 0 < was < self._created:
                log.error(
                    "the database was lost; the games that are being played are written to the"
                    " new one"
                )
                self._hold_again(self._unfinished.take_all())
            self._unfinished.add(batch)
            self._drop(len(batch))
            self._keep_house()

    def _next_batch(self) -> list[GameRows]:
        """The rows that are held longest, at most `_BATCH` of them and `_BATCH_BYTES` in all.

        Batches are short because old games are deleted between them only.
        """
        batch = [self._held[0]]
        size = self._held[0].size
        for n in range(1, min(_BATCH, len(self._held))):
            size += self._held[n].size
            if size > _BATCH_BYTES:
                break
            batch.append(self._held[n])
        return batch

    def _write_alone(self, rows: GameRows) -> None:
        try:
            self._database.write([rows])
        except Exception as error:
            if _is_trouble(error):
                raise
            if self._seldom.allows(f"unheld {type(error).__name__}"):
                log.exception(
                    "no database can hold what this game sent", extra={"game": rows.key[0]}
                )
            self.lost += 1

    def _drop(self, count: int) -> None:
        with self._wake:
            for _ in range(count):
                size = self._held.popleft().size
                self._held_bytes -= size
                self._unchecked_bytes += size
            self._done += count
            self._wake.notify_all()

    def _hold_again(self, batch: list[GameRows]) -> None:
        with self._wake:
            self._held.extend(batch)
            self._done -= len(batch)
            self._held_bytes += sum(rows.size for rows in batch)

    def _keep_house(self) -> None:
        share = self._max_bytes // _HOUSEKEEPING_SHARE
        if time.monotonic() < self._next_housekeeping and self._unchecked_bytes < max(
            share, _LEAST_HOUSEKEEPING
        ):
            return
        self._next_housekeeping = time.monotonic() + _HOUSEKEEPING_S
        self._unchecked_bytes = 0
        now, runs_evenly = self._clock.read()
        oldest = now - self._max_age_s if runs_evenly else 0.0
        self._database.close_abandoned(now)
        # Less than there may be, so that what comes until the next time has room.
        self._database.forget(before=oldest, max_bytes=self._max_bytes - share)

    def _failed(self, error: Exception) -> None:
        first_line = next(iter(str(error).splitlines()), "")
        self.problem = f"{type(error).__name__}: {first_line}"
        self._database.look_again()
        if self._seldom.allows("not saved"):
            log.error("games can't be saved, turns wait in memory: %s", self.problem)

    def _lose(self, why: str) -> None:
        self.lost += 1
        if self._seldom.allows("lost"):
            log.error("turns are lost: %s", why)


class _WallClock:
    """The time, and whether to believe it: for a day after the clock has been set, nothing is
    deleted by its age.
    """

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()
        self._believed_from = 0.0

    def read(self) -> tuple[float, bool]:
        now = time.time()
        since_boot = time.monotonic()
        if abs(now - since_boot - self._ahead) > _JUMP_S:
            self._ahead = now - since_boot
            self._believed_from = since_boot + _DAY_S
        return now, since_boot >= self._believed_from


class _Unfinished:
    """The rows of the games that haven't ended, the least recently played games dropped beyond
    `max_bytes`.
    """

    def __init__(self, max_bytes: int) -> None:
        self._games: OrderedDict[tuple[str, str, str], list[GameRows]] = OrderedDict()
        self._max_bytes = max_bytes
        self._bytes = 0

    def add(self, batch: list[GameRows]) -> None:
        for rows in batch:
            self._games.setdefault(rows.key, []).append(rows)
            self._games.move_to_end(rows.key)
            self._bytes += rows.size
        for rows in batch:
            if rows.end is not None:
                self._remove(rows.key)
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._games)))

    def take_all(self) -> list[GameRows]:
        everything = list(chain.from_iterable(self._games.values()))
        self._games.clear()
        self._bytes = 0
        return everything

    def _remove(self, key: tuple[str, str, str]) -> None:
        self._bytes -= sum(rows.size for rows in self._games.pop(key, []))


def _in_memory(item: Event | GameRows) -> int:
    """The bytes that an item takes until it is written: a request takes more once it is parsed."""
    if isinstance(item, GameRows):
        return item.size
    return item.size * _PARSED


def _is_trouble(error: Exception) -> bool:
    """Whether the database is to blame, so that the same rows may pass later."""
    if isinstance(error, OSError | ProcsnakeError):
        return True
    return isinstance(error, DBAPIError) and not isinstance(error, DataError | IntegrityError)
