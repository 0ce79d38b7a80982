"""The machine's cores, shared out among the agents that think at the same time."""

from __future__ import annotations

import heapq
import itertools
import math
import os
import threading
import time
from pathlib import Path

_LAST_CALL_S = 0.06
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class Cores:
    """Lets `count` calls run at a time, the most urgent first, and tells each how long it may take.

    Twenty searches that run at once on two cores all end late and none has seen anything of its core's caches; one after the
    other, each with a tenth of the time, they search as much and end when they should. A call that comes alone gets all of it.
    One that still waits 60 ms before it is due runs beside the others: games with seconds a move must not cost others a turn.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._running = 0
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, threading.Event]] = []
        self._lock = threading.Lock()

    def enter(self, due: float) -> float:
        """Wait for a core; the `time.monotonic()` until which to think. To be followed by `leave`."""
        with self._lock:
            if self._running < self.count:
                self._running += 1
                return self._share(due)
            place = (due, next(self._order), threading.Event())
            heapq.heappush(self._waiting, place)
        if not place[2].wait(max(0.0, due - _LAST_CALL_S - time.monotonic())):
            with self._lock:
                if place in self._waiting:
                    self._waiting.remove(place)
                    heapq.heapify(self._waiting)
                    self._running += 1
        with self._lock:
            return self._share(due)

    def leave(self) -> None:
        """Give the core to whoever is due next."""
        with self._lock:
            if self._waiting and self._running <= self.count:
                heapq.heappop(self._waiting)[2].set()
            else:
                self._running -= 1

    def _share(self, due: float) -> float:
        """The time that is left, divided by the rounds that everybody here takes together."""
        now = time.monotonic()
        rounds = max(1.0, (self._running + len(self._waiting)) / self.count)
        return now + (due - now) / rounds


def usable_cores() -> int:
    """How many cores this process may keep busy: by its affinity and by its container's quota. At least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text().split()
        return max(1, min(allowed, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        return max(1, allowed)
