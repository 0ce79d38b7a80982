"""Estimates how long each large part of the engine will take to compile, from this machine's pace
so far.
"""

from __future__ import annotations

import sys
import threading
import time

from numba.core import event

PARTS = {
    "_set_up_standard_boards": ("how a game begins", 7.0),
    "_play_standard_boards": ("a turn of a game", 7.0),
    "_observe_rows": ("what a policy sees", 14.0),
    "advance_boards": ("a turn of many games, for training", 26.0),
    "show_boards": ("what snakes see of many games", 18.0),
}
"""By function, what it is for and the processor seconds that it takes.

Measured once each, on a core of an AMD EPYC, on 2026-11-30. What isn't listed takes three seconds
at most. """


class Estimate(event.Listener):
    """Says how long a part will take when its compilation begins. Nested parts aren't counted.

    The pace is the wall time of the parts so far per second of their usual time, because other
    programs share the processor."""

    def __init__(self) -> None:
        self.is_wanted = False
        """Whether anything is said. Processes that another one starts have nothing to say."""
        self._depth = 0
        self._began = 0.0
        self._took = 0.0
        self._expected = 0.0

    def on_start(self, event: event.Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth += 1
        part = PARTS.get(event.data["dispatcher"].py_func.__name__)
        if self._depth > 1 or part is None:
            return
        self._began = time.monotonic()
        if self.is_wanted:
            what, seconds = part
            pace = self._took / self._expected if self._expected else 1.0
            print(f"procsnake: … {what}: about {seconds * pace:.0f} s", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        part = PARTS.get(event.data["dispatcher"].py_func.__name__)
        if self._depth or part is None:
            return
        self._took += time.monotonic() - self._began
        self._expected += part[1]
