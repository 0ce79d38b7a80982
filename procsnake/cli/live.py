"""A line on running games, with the remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from envs.common.terminal import Redrawn

_BETWEEN_LINES_S = 10.0
_BETWEEN_REDRAWS_S = 0.5


class Live:
    """A context manager that shows a line of progress, with the remaining time, while games are
    played.

    In a terminal the line is redrawn. Elsewhere it is printed to stderr every ten seconds.
    `line` formats the progress, which must know its remaining games."""

    def __init__(self, line: Callable[[Any], str]) -> None:
        from agents.measure.sprt.play import Pace

        self._line = line
        self._screen = Redrawn(sys.stderr)
        self._pace = Pace()
        self._told = time.monotonic()

    def __enter__(self) -> Live:
        self._screen.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.__exit__()

    def __call__(self, progress: Any) -> None:
        self._pace.tick()
        live = self._screen.live
        if time.monotonic() - self._told < (_BETWEEN_REDRAWS_S if live else _BETWEEN_LINES_S):
            return
        self._told = time.monotonic()
        seconds = self._pace.seconds(progress.games_to_go())
        text = f"{self._line(progress)} · about {duration(seconds or 0.0)} to go"
        self._screen.show(text) if live else print(text, file=sys.stderr)


def duration(seconds: float) -> str:
    """A time as one would say it."""
    minutes = seconds / 60
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
