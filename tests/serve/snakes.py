"""A snake of twenty lines that is right, written from the API's description alone, to be made wrong
in tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.http_server import QuietHandler, serving

STEPS = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}
INFO = {"apiversion": "1", "color": "#00aa11"}


@dataclass
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hangs_up: bool = False


Responder = Callable[[str, Any], Answer | None]
"""(path, body as JSON or None if it is none) to an answer; None: close the connection without
one.
"""


def as_json(data: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(data).encode())


def open_ways(request: Any) -> list[str]:
    """The moves that end on the board and on no body."""
    board = request["board"]
    head = request["you"]["body"][0]
    taken = {
        (p["x"], p["y"]) for snake in [*board["snakes"], request["you"]] for p in snake["body"][:-1]
    }
    ways = []
    for move, (dx, dy) in STEPS.items():
        x = head["x"] + dx
        y = head["y"] + dy
        if 0 <= x < board["width"] and 0 <= y < board["height"] and (x, y) not in taken:
            ways.append(move)
    return ways or ["up"]


def good_snake(path: str, request: Any) -> Answer:
    if path == "/":
        return as_json(INFO)
    if not isinstance(request, dict) or "game" not in request:
        return as_json({"error": "this is not a game"}, 400)
    return as_json({"move": open_ways(request)[0]} if path == "/move" else {})


def served(
    respond: Callable[..., Answer | None], *, with_headers: bool = False
) -> AbstractContextManager[str]:
    """The snake on a free port of this machine; gives its URL.

    `respond` is a `Responder`; with `with_headers` it gets the request's headers as well.
    """

    class Handler(QuietHandler):
        def do_GET(self):
            self._answer(self._respond(None))

        def do_POST(self):
            text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                body = json.loads(text)
            except ValueError:
                body = None
            self._answer(self._respond(body))

        def _respond(self, body):
            return (
                respond(self.path, body, self.headers) if with_headers else respond(self.path, body)
            )

        def _answer(self, answer):
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            if answer.hangs_up:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer.body)

    return serving(Handler)
