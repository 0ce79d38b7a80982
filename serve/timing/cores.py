"""Shares the machine's cores among the games whose agents think at the same time."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field

_LAST_CALL_S = 0.06


@dataclass(eq=False)
class Call:
    """A call that thinks or waits for a core. It should be done at `until`, by
    `time.monotonic()`.
    """

    due: float
    game: object
    until: float = 0.0
    may_begin: threading.Event = field(default_factory=threading.Event)


class Cores:
    """Lets `count` calls run at a time, the most urgent first, and tells each how long it may take.

    Twenty searches at once on two cores would all end late, without benefit from the cores' caches.
    In sequence, each with a tenth of the time, they search as much and end in time. A single call
    gets all of the time.

    Each game gets an equal share of the time, however many calls it makes; its second call comes
    after all other games' first. If a game would lose its share because the cores are busy, its
    call runs beside the others, with at most twice `count` calls at a time. So does any call that
    still waits 60 ms before it is due."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._order = itertools.count()
        self._running: list[Call] = []
        self._waiting: list[tuple[int, float, int, Call]] = []
        self._lock = threading.Lock()

    def enter(self, due: float, *, game: object = None) -> Call:
        """Wait for a core. The returned call says until when to think; pass it to `leave`
        afterwards.

        Each call without a `game` counts as a game of its own.
        """
        if game is None:
            game = object()
        call = Call(due, game)
        with self._lock:
            others = sum(other.game == call.game for other in self._here())
            if len(self._running) < self.count:
                return self._begin(call, self.count)
            if not others and self._would_wait_in_vain(call):
                return self._begin(call, 2 * self.count)
            self._waiting.append((others, due, next(self._order), call))
            self._waiting.sort()
        if not call.may_begin.wait(max(0.0, due - _LAST_CALL_S - time.monotonic())):
            with self._lock:
                if not call.may_begin.is_set():
                    self._waiting = [place for place in self._waiting if place[3] is not call]
                    return self._begin(call, self.count)
        return call

    def leave(self, call: Call) -> None:
        """Give the core to the call that is due next."""
        with self._lock:
            self._running.remove(call)
            if self._waiting and len(self._running) < self.count:
                following = self._waiting.pop(0)[3]
                self._begin(following, self.count)
                following.may_begin.set()

    def _begin(self, call: Call, slots: int) -> Call:
        """Let the call think: for the time until it is due, divided by the rounds that all games
        here take together on so many slots.
        """
        self._running.append(call)
        now = time.monotonic()
        call.until = now + (call.due - now) / self._rounds(slots)
        return call

    def _would_wait_in_vain(self, call: Call) -> bool:
        """Whether the first core to be free comes too late for the call's part of the time, and
        there is room beside.
        """
        now = time.monotonic()
        part = (call.due - now) / self._rounds(self.count, newcomers=1)
        return (
            len(self._running) < 2 * self.count
            and min(other.until for other in self._running) > call.due - part
        )

    def _rounds(self, slots: int, *, newcomers: int = 0) -> float:
        return max(1.0, (len({call.game for call in self._here()}) + newcomers) / slots)

    def _here(self) -> list[Call]:
        return self._running + [place[3] for place in self._waiting]
