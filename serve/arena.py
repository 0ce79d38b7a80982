"""The Battlesnake API v1 as a Flask application: engines call it, agents answer.

`GET /` tells who we are; `POST /start`, `/move` and `/end` carry the game. Several snakes live at `/snakes/<name>/`; the first
also answers at the root. Source: docs.battlesnake.com/api.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from flask import Blueprint, Flask, Response, jsonify, request
from werkzeug.exceptions import HTTPException

from agents.agent import Agent
from envs.battlesnake.state import MOVE_NAMES
from envs.battlesnake.webhook import WebhookError, read_move_request
from envs.errors import ConfigError
from serve.deadline import Decider

API_VERSION = "1"
MAX_BODY_BYTES = 256 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a snake appears on the board. Raises `ConfigError` for a colour that is none or a text that is too long."""

    color: str = "#128a7a"
    """As "#RRGGBB"."""
    head: str = "bendr"
    """Name of a head that the platform knows."""
    tail: str = "freckled"
    """Name of a tail that the platform knows."""
    author: str = ""
    """Who made it."""
    version: str = "procsnake"
    """Shown by platforms beside the name."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"#[0-9A-Fa-f]{6}", self.color):
            raise ConfigError(f"color is {self.color!r}; it must be #RRGGBB in hexadecimal, such as #128a7a")
        for name, text in asdict(self).items():
            if len(text) > 100:
                raise ConfigError(f"{name} is {len(text)} characters long; at most 100 are shown")


def create_app(agents: Mapping[str, Agent] | Agent, *, look: Look | None = None, margin_ms: int = 80) -> Flask:
    """The application for these agents, by name; the first also answers at `/`.

    Bodies are limited to 256 KiB. What is malformed gets 400 with a JSON reason; an agent that fails or is late is answered for
    (`serve.deadline`), so `/move` always gets a legal answer. Raises `ConfigError` for no agents or names unfit for a URL.
    """
    by_name = {agents.name: agents} if isinstance(agents, Agent) else dict(agents)
    if not by_name:
        raise ConfigError("there are no agents to serve; name at least one: procsnake serve flood")
    for name in by_name:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"the agent name {name!r} can't be part of a URL; letters, digits, '.', '_' and '-' can")
    app = Flask("procsnake", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    # People enter their snake's URL with a slash at the end or without.
    app.url_map.strict_slashes = False
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(WebhookError, lambda error: _refusal(400, str(error)))
    app.register_error_handler(Exception, _unexpected)
    for number, (name, agent) in enumerate(by_name.items()):
        snake = _snake_routes(name, Decider(agent, margin_ms=margin_ms), look or Look())
        app.register_blueprint(snake, url_prefix=f"/snakes/{name}")
        if number == 0:
            app.register_blueprint(snake, name="root", url_prefix="/")
    return app


def _snake_routes(name: str, decider: Decider, look: Look) -> Blueprint:
    routes = Blueprint(re.sub(r"\W", "_", name), __name__)

    @routes.get("/")
    def info() -> Response:
        return jsonify(apiversion=API_VERSION, **asdict(look))

    @routes.post("/start")
    @routes.post("/end")
    def acknowledge() -> Response:
        # Nothing is kept between requests. An eliminated snake is told of the end, too, so `you` may be dead here.
        _body()
        return jsonify({})

    @routes.post("/move")
    def move() -> Response:
        decision = decider.decide(read_move_request(_body()))
        return jsonify(move=MOVE_NAMES[decision.move], shout="")

    return routes


def _body() -> dict[str, Any]:
    try:
        body = request.get_json(force=True, silent=True)
    except RecursionError:
        body = None
    if not isinstance(body, dict):
        raise WebhookError("the body is not a JSON object; an engine sends one with game, turn, board and you")
    return body


def _refusal(status: int, reason: str) -> tuple[Response, int]:
    return jsonify(error=reason), status


def _http_error(error: HTTPException) -> tuple[Response, int]:
    return _refusal(error.code or 500, error.description or error.name)


def _unexpected(error: Exception) -> tuple[Response, int]:
    """The log gets the trace; a stranger gets none of it."""
    from flask import current_app

    current_app.logger.error("unexpected error", exc_info=error)
    return _refusal(500, "internal error")
