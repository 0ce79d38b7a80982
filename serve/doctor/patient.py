"""The snake under examination: asks it as an engine does, and says what is wrong with an answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.connection import CALL_ERRORS, Answer, AnswerTooLargeError, Connection
from envs.battlesnake.state import MOVE_NAMES

PATIENCE_S = 5.0
"""How long any call may take before it is given up: the arena's health check waits as long."""
MAX_SHOUT = 256


@dataclass(frozen=True)
class Reply:
    """How one request went. `fault` is a name in `FAULTS`, or ""; `data` the answer's JSON, if it had any."""

    ms: float
    told: str
    fault: str = ""
    answer: Answer | None = None
    data: Any = None
    move: str = ""


class Patient:
    """One connection to a snake. `close` it."""

    def __init__(self, url: str) -> None:
        self._connection = Connection(url)

    def info(self) -> Reply:
        """`GET /`."""
        return self._as_json(self._ask("GET", "", None))

    def post(self, call: str, body: Mapping[str, Any] | bytes) -> Reply:
        """`POST /start` or `/end`: what they answer doesn't matter, that they do does."""
        return self._ask("POST", call, body)

    def move(self, body: Mapping[str, Any]) -> Reply:
        """`POST /move`, with the move read and its time held against the game's time-out."""
        reply = self._as_json(self._ask("POST", "move", body))
        if reply.fault:
            return reply
        move, shout = reply.data.get("move"), reply.data.get("shout", "")
        told, fault = _fault_of_move(move, shout)
        limit = body["game"]["timeout"]
        if reply.ms > limit and fault in ("", "long-shout"):
            told, fault = f"answered after {reply.ms:.0f} ms, a game allows {limit}", "slow-move"
        is_move = fault in ("", "long-shout", "slow-move")
        return Reply(reply.ms, told or reply.told, fault, reply.answer, reply.data, move if is_move else "")

    def play_one(self, body: Mapping[str, Any]) -> Reply:
        """A game of one move: what `/move` answered between `/start` and `/end`."""
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
            data = json.loads(reply.answer.body)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            return Reply(reply.ms, reply.told, "", reply.answer, data)
        return Reply(reply.ms, f"answered {reply.answer.body[:60]!r}, which is no JSON object", "not-json", reply.answer)


def _fault_of_error(error: Exception, ms: float) -> tuple[str, str]:
    if isinstance(error, AnswerTooLargeError):
        return str(error), "too-large"
    if ms >= 1000 * PATIENCE_S * 0.99:
        return f"no answer within {PATIENCE_S:.0f} s", "timed-out"
    told = f"{type(error).__name__}: {error}"
    # `http.client` has errors of its own for answers that stop half-way or never begin.
    is_cut_off = not isinstance(error, OSError) or isinstance(error, ConnectionResetError | BrokenPipeError)
    return told, "hangs-up" if is_cut_off else "unreachable"


def _fault_of_status(answer: Answer, ms: float) -> tuple[str, str]:
    if answer.status == 200:
        return f"{ms:.0f} ms", ""
    told = f"HTTP status {answer.status}"
    if 300 <= answer.status < 400:
        return f"{told} to {answer.headers.get('Location', 'nowhere')}", "redirects"
    kinds = {401: "not-allowed", 403: "not-allowed", 405: "not-allowed", 429: "not-allowed", 404: "not-found"}
    return told, kinds.get(answer.status, "server-error" if answer.status >= 500 else "not-200")


def _fault_of_move(move: Any, shout: Any) -> tuple[str, str]:
    if move is None:
        return 'the answer has no "move"', "no-move"
    if move not in MOVE_NAMES:
        is_shouted = isinstance(move, str) and move.strip().lower() in MOVE_NAMES
        return f"the move is {str(move)[:40]!r}", "uppercase-move" if is_shouted else "invalid-move"
    if not isinstance(shout, str | None) or len(shout or "") > MAX_SHOUT:
        return f"the shout is no text of up to {MAX_SHOUT} characters", "long-shout"
    return "", ""
