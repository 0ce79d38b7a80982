"""Calls the examined snake as an engine does, and names the faults of its answers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.measure.evaluation.connection import (
    CALL_ERRORS,
    Answer,
    AnswerTooLargeError,
    BadAnswerError,
    Connection,
    in_words,
    read_move,
    read_object,
)
from envs.battlesnake.state import MOVE_NAMES

PATIENCE_S = 5.0
"""How long any call may take before it is given up, in seconds. The arena's health check waits as
long.
"""
MAX_SHOUT = 256


@dataclass(frozen=True)
class Reply:
    """The result of one request. `fault` is a name in `FAULTS`, or ""; `data` is the answer's JSON,
    if it had any.
    """

    ms: float
    summary: str
    """The fault in words; without one, how long the answer took."""
    fault: str = ""
    answer: Answer | None = None
    data: Any = None
    move: str = ""


class SnakeClient:
    """One connection to a snake. `close` it."""

    def __init__(self, url: str) -> None:
        self._connection = Connection(url)

    def info(self) -> Reply:
        """Call `GET /`."""
        return self._as_json(self._ask("GET", "", None))

    def post(self, call: str, body: Mapping[str, Any] | bytes) -> Reply:
        """Call `POST /start` or `/end`. There must be an answer, but its content doesn't matter."""
        return self._ask("POST", call, body)

    def move(self, body: Mapping[str, Any]) -> Reply:
        """Call `POST /move`, read the move, and compare its time with the game's timeout."""
        reply = self._as_json(self._ask("POST", "move", body))
        if reply.fault:
            return reply
        summary, fault = _fault_of_move(reply.data)
        limit = body["game"]["timeout"]
        if reply.ms > limit and fault in ("", "long-shout"):
            summary = f"answered after {reply.ms:.0f} ms, a game allows {limit}"
            fault = "slow-move"
        judged = replace(reply, summary=summary or reply.summary, fault=fault)
        if fault in ("", "long-shout", "slow-move"):
            return replace(judged, move=reply.data["move"])
        return judged

    def play_one(self, body: Mapping[str, Any]) -> Reply:
        """Play a game of one move. Returns what `/move` answered between `/start` and `/end`."""
        self.post("start", body)
        reply = self.move(body)
        self.post("end", body)
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | bytes | None) -> Reply:
        began = time.monotonic()
        try:
            answer = self._connection.exchange(method, path, body, PATIENCE_S)
        except CALL_ERRORS as error:
            ms = 1000 * (time.monotonic() - began)
            return Reply(ms, *_fault_of_error(error, ms))
        ms = 1000 * (time.monotonic() - began)
        return Reply(ms, *_fault_of_status(answer, ms), answer)

    def _as_json(self, reply: Reply) -> Reply:
        if reply.fault or reply.answer is None:
            return reply
        try:
            return replace(reply, data=read_object(reply.answer.body))
        except BadAnswerError as error:
            return replace(reply, summary=str(error), fault="not-json")


def _fault_of_error(error: Exception, ms: float) -> tuple[str, str]:
    """The summary and the fault of a call that raised `error` after `ms` milliseconds."""
    if isinstance(error, AnswerTooLargeError):
        return str(error), "too-large"
    if ms >= 1000 * PATIENCE_S * 0.99:
        return f"no answer within {PATIENCE_S:.0f} s", "timed-out"
    # `http.client` has errors of its own for answers that stop half-way or never begin.
    is_cut_off = not isinstance(error, OSError) or isinstance(
        error, ConnectionResetError | BrokenPipeError
    )
    if is_cut_off:
        return in_words(error), "hangs-up"
    return in_words(error), "unreachable"


def _fault_of_status(answer: Answer, ms: float) -> tuple[str, str]:
    """The summary and the fault of an answer's status; the fault is "" for 200."""
    if answer.status == 200:
        return f"{ms:.0f} ms", ""
    summary = f"HTTP status {answer.status}"
    if 300 <= answer.status < 400:
        return f"{summary} to {answer.headers.get('Location', 'nowhere')}", "redirects"
    if answer.status in (401, 403, 405, 429):
        return summary, "not-allowed"
    if answer.status == 404:
        return summary, "not-found"
    if answer.status >= 500:
        return summary, "server-error"
    return summary, "not-200"


def _fault_of_move(answer: Mapping[str, Any]) -> tuple[str, str]:
    """The summary and the fault of what `/move` answered; both are "" if all is well."""
    try:
        read_move(answer)
    except BadAnswerError as error:
        return str(error), _fault_of_bad_move(answer.get("move"))
    shout = answer.get("shout")
    if shout is None:
        return "", ""
    if not isinstance(shout, str):
        return f"the shout is {repr(shout)[:40]}, which isn't a string", "not-text"
    if len(shout) > MAX_SHOUT:
        return f"the shout has {len(shout)} characters, more than {MAX_SHOUT}", "long-shout"
    return "", ""


def _fault_of_bad_move(move: Any) -> str:
    if move is None:
        return "no-move"
    if isinstance(move, str) and move.strip().lower() in MOVE_NAMES:
        return "uppercase-move"
    return "invalid-move"
