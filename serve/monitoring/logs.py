"""A server's log on standard error: time, level, logger, game and message, for people or as
JSON.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

from flask import g, has_request_context

from envs.common.strangers.printable import printable

_EVERY_S = 60.0
_BURST = 10


class _Line(logging.Formatter):
    """`2026-11-22T20:15:00.123Z WARNING serve.arena game=… message`.

    A trace follows indented, so that no text of a stranger can look like a line of ours."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def format(self, record: logging.LogRecord) -> str:
        parts = [self.formatTime(record), record.levelname, record.name]
        if game := game_of(record):
            parts.append(f"game={printable(game)}")
        parts.append(printable(record.getMessage()))
        line = " ".join(parts)
        if trace := self.trace_of(record):
            return f"{line}\n{textwrap.indent(trace, '  ')}"
        return line

    def trace_of(self, record: logging.LogRecord) -> str:
        """The record's trace, "" if it has none."""
        if record.exc_info:
            return printable(self.formatException(record.exc_info), keep="\n")
        return ""


class _Json(_Line):
    """One JSON object per line: `time`, `level`, `logger`, `message`, and where there are any
    `game` and `trace`.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "game": game_of(record),
            "message": record.getMessage(),
            "trace": self.trace_of(record),
        }
        return json.dumps({name: value for name, value in entry.items() if value})


def game_of(record: logging.LogRecord) -> str | None:
    """Return the id of the game that a record is about: its own `game`, or that of the current
    request; None without either.
    """
    if game := getattr(record, "game", None):
        return str(game)
    if has_request_context():
        return g.get("game")
    return None


class Seldom(logging.Filter):
    """Lets one kind of message through once per minute of `clock`, so that bad requests can't fill
    the disk.

    After a quiet time it lets `burst` of them through at once. As a logging filter it treats all
    messages of one line of code as one kind."""

    def __init__(self, *, burst: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._burst = burst
        self._clock = clock
        self._due: dict[str, float] = {}

    def allows(self, kind: str) -> bool:
        """Whether a message of this kind is let through now."""
        now = self._clock()
        # When the next one would be due if each had waited for its minute; a burst runs ahead of
        # that.
        due = max(now, self._due.get(kind, -math.inf))
        if due > now + (self._burst - 1) * _EVERY_S:
            return False
        self._due[kind] = due + _EVERY_S
        return True

    def filter(self, record: logging.LogRecord) -> bool:
        return self.allows(f"{record.pathname}:{record.lineno}")


def configure(*, as_json: bool = False) -> None:
    """Make all loggers of this process, also of other libraries, write warnings and errors in this
    form.

    Each line of code may write ten messages at once, and then one per minute, so that no caller
    can fill the disk."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(Seldom(burst=_BURST))
    formatter = _Json() if as_json else _Line()
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def gunicorn_logger() -> type:
    """Return a class for gunicorn's `logger_class` with which gunicorn's messages are written as
    `configure` says.
    """
    from gunicorn.glogging import Logger

    class Passing(Logger):
        def setup(self, cfg: Any) -> None:
            for log in (self.error_log, self.access_log):
                log.handlers.clear()
                log.propagate = True

    return Passing
