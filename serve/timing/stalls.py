"""Measures stalls: how long this process is kept from running when the whole machine is busy.

A stall delays the timer that ends an agent's thinking, and everything after it. A separate thread
measures stalls."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cache

_NAP_S = 0.02
_USUAL_S = 0.003
_HALF_LIFE_S = 10.0


class Stalls:
    """Sleeps for short times; the excess of a sleep is a stall.

    `ms` is the peak of stalls, which halves every ten seconds.

    An excess of three milliseconds is usual and doesn't count. `clock` counts seconds, never back.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self.ms = 0.0

    def nap(self) -> None:
        """Measure once."""
        before = self._clock()
        self._sleep(_NAP_S)
        took = self._clock() - before
        stalled = max(0.0, took - _NAP_S - _USUAL_S)
        self.ms = max(1000 * stalled, self.ms * 0.5 ** (took / _HALF_LIFE_S))

    def run(self) -> None:
        """Measure repeatedly, forever."""
        while True:
            self.nap()


@cache
def _of_this_process() -> Stalls:
    stalls = Stalls()
    threading.Thread(target=stalls.run, name="stalls", daemon=True).start()
    return stalls


def stall_ms() -> float:
    """Return the peak of this process's latest stalls, in milliseconds. The first call starts the
    measurement.
    """
    return _of_this_process().ms


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_of_this_process.cache_clear)
