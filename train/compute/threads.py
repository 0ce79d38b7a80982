"""Measures how many threads torch should use, which depends on the machine's other load."""

from __future__ import annotations

import os
import time

import torch

from envs.common.cores import usable_cores

_UPDATES_BETWEEN_PROBES = 8
_WORTHWHILE = 0.75


class ThreadTuner:
    """Chooses between one thread and all of them, by a probe of some milliseconds after every few
    updates.

    With idle cores, all threads are faster. Where other programs compete for the cores, one thread
    was five times as fast (measured), because threads wait for each other at the end of each
    operation, and the slowest one isn't running."""

    def __init__(self, fixed: int | None) -> None:
        available = available_threads()
        self._most = fixed or available
        self._tuned = fixed is None and available > 1
        self._updates = 0
        torch.set_num_threads(self._most)
        if self._tuned:
            self._probe()

    def before_update(self) -> None:
        """Call before each update."""
        self._updates += 1
        if self._tuned and self._updates % _UPDATES_BETWEEN_PROBES == 0:
            self._probe()

    def _probe(self) -> None:
        one = _seconds(1)
        most = _seconds(self._most)
        torch.set_num_threads(self._most if most < _WORTHWHILE * one else 1)


def available_threads() -> int:
    """Return the number that OMP_NUM_THREADS asks for, or without one that of the cores.

    OpenMP takes a list, too, with a number for each depth of nested regions.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked):
        return int(asked)
    return usable_cores()


def _seconds(threads: int) -> float:
    """Time for work that splits evenly over `threads`."""
    torch.set_num_threads(threads)
    work = torch.ones(1 << 20)
    began = time.perf_counter()
    for _ in range(20):
        work.sin()
    return time.perf_counter() - began
