"""A snake behind a URL, called as the official engine calls it.

A request fails if it takes longer than the timeout, if it gets no answer, or if the answer is not
a move. Then the snake's last good answer is played again, or `up` if there is none. (Facts: the
official `battlesnake play`, December 2025.)
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agents.measure.evaluation.connection import (
    CALL_ERRORS,
    BadAnswerError,
    Connection,
    in_words,
    read_move,
    read_object,
)
from agents.player import without_secrets
from envs.battlesnake.state import UP
from envs.battlesnake.webhook import NO_LOOK
from envs.common.errors import ProcsnakeError

_INFO_TIMEOUT_S = 5.0
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
_MAX_LOOK = 100


class Reply(NamedTuple):
    """The move of a snake behind a URL."""

    move: int
    latency_ms: float
    failure: str
    """Why the request failed; "" if it didn't."""

    def is_late(self, timeout_ms: float) -> bool:
        """Return whether the request failed because of the timeout."""
        return bool(self.failure) and self.latency_ms >= timeout_ms


class SnakeUnreachableError(ProcsnakeError):
    """No snake that speaks the Battlesnake API answers at a URL."""


class RemoteSnake:
    """A snake behind a URL, with one connection that is kept open. It takes one request at a
    time.
    """

    def __init__(self, url: str, timeout_ms: int) -> None:
        self.url = url
        self._timeout = timeout_ms / 1000
        self._connection = Connection(url)
        self._last_move = UP

    def check(self) -> dict[str, str]:
        """Fetch the snake's info, as engines do before a game, and return how it looks. Raises
        `SnakeUnreachableError`.
        """
        try:
            return _look(read_object(self._exchange("GET", "", None, _INFO_TIMEOUT_S)))
        except CALL_ERRORS as error:
            raise SnakeUnreachableError(
                f"no snake answers at {without_secrets(self.url)} ({in_words(error)}). Is it"
                " running?",
                next_commands={"to start one": ("serve", "flood")},
            ) from error

    def tell(self, event: str, body: Mapping[str, Any]) -> None:
        """Post /start or /end. The answer is ignored."""
        with suppress(*CALL_ERRORS):
            self._exchange("POST", event, body, self._timeout)

    def move(self, body: Mapping[str, Any]) -> Reply:
        """Ask for a move. If the request fails, the answer has the last good move."""
        began = time.monotonic()
        move = self._last_move
        failure = ""
        try:
            move = read_move(read_object(self._exchange("POST", "move", body, self._timeout)))
        except CALL_ERRORS as error:
            failure = in_words(error)
        took = time.monotonic() - began
        if took >= self._timeout:
            failure = f"no answer within {1000 * self._timeout:.0f} ms"
        if not failure:
            self._last_move = move
        return Reply(self._last_move, 1000 * took, failure)

    def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None, timeout: float
    ) -> bytes:
        answer = self._connection.exchange(method, path, body, timeout)
        if answer.status != 200:
            self.close()
            raise BadAnswerError(f"it answers with HTTP status {answer.status}")
        return answer.body

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _look(info: Mapping[str, Any]) -> dict[str, str]:
    """The looks that a stranger's snake has by its own account, as far as they can be shown."""
    look = dict(NO_LOOK)
    color = info.get("color")
    if isinstance(color, str) and _COLOR.fullmatch(color):
        look["color"] = color
    for part in ("head", "tail"):
        text = info.get(part)
        if isinstance(text, str) and text and text.isprintable():
            look[part] = text[:_MAX_LOOK]
    return look
