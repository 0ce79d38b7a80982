"""How many threads torch should use is measured, because it depends on who else is using the machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_CYCLE = 128


class ThreadTuner:
    """Runs stretches of equal work, now and then one with one thread and one with all, and stays with the faster.

    On a machine with idle cores all threads win; where others compete for the cores, one thread was five times as fast (measured:
    threads wait for each other at the end of each operation, and the slowest one isn't running).
    """

    def __init__(self, fixed: int | None) -> None:
        available = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
        self._choices = (fixed,) if fixed else tuple(sorted({1, available}))
        self._seconds: dict[int, float] = {}
        self._stretch = 0
        torch.set_num_threads(self._choices[0])

    @contextmanager
    def stretch(self) -> Iterator[None]:
        """Wrap one piece of work."""
        # The first stretch of a cycle is no trial: the very first one also pays for set-up.
        trial = self._stretch % _CYCLE - 1
        self._stretch += 1
        if len(self._choices) == 1 or not 0 <= trial < len(self._choices):
            yield
            return
        torch.set_num_threads(self._choices[trial])
        began = time.perf_counter()
        yield
        self._seconds[self._choices[trial]] = time.perf_counter() - began
        if trial == len(self._choices) - 1:
            torch.set_num_threads(min(self._seconds, key=self._seconds.__getitem__))
