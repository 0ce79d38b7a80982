"""The Battlesnake API v1 as a Flask application: engines call it, agents answer.

`GET /` tells who we are; `POST /start`, `/move` and `/end` carry the game. Several snakes live at `/snakes/<name>/`; the first
also answers at the root. Source: docs.battlesnake.com/api. `/health` and `/metrics` are for whoever runs the server, and so
are the viewer's pages (`serve.viewer`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from flask import Blueprint, Flask, Response, abort, current_app, jsonify, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from agents.agent import Agent
from envs.battlesnake.state import MOVE_NAMES
from envs.battlesnake.webhook import WebhookError, read_move_request
from envs.errors import ConfigError
from serve import metrics, openapi
from serve.cores import Cores, usable_cores
from serve.deadline import Decider
from serve.games import GameStore
from serve.look import Look
from serve.metrics import Metrics
from serve.rate_limit import RateLimit
from serve.viewer import Access, home_page, viewer_blueprint

__all__ = ["Look", "create_app"]

API_VERSION = "1"
MAX_BODY_BYTES = 2 << 20
ARRIVED = "procsnake.arrived"
"""Where a server leaves the `time.monotonic()` at which a request was complete, in the WSGI environment."""
GAMES = "procsnake.games"
"""Where an application keeps its `GameStore` (or None), in `extensions`."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,100}")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def create_app(
    agents: Mapping[str, Agent] | Agent,
    *,
    look: Look | Mapping[str, Look] | None = None,
    store: GameStore | None = None,
    access: Access | None = None,
    secret: str | None = None,
    rate_limit: float | None = None,
    cores: int | None = None,
) -> Flask:
    """The application for these agents, by name; the first also answers at `/`.

    `look`: of all snakes, or by name (default: each its own). `store`: where games are kept and watched (default: nowhere).
    `access`: who may watch and read metrics (default: this machine). `secret`: 16 letters and digits or more, without which, as
    the first part of their path, snakes answer nobody. `rate_limit`: requests a second from one address. `cores`: how many
    agents think at a time (default: as many as there are cores).

    Bodies are limited to 2 MiB. What is malformed gets 400 with a JSON reason; an agent that fails or is late is answered for
    (`serve.deadline`), so `/move` always gets a legal answer. Raises `ConfigError` for no agents, names unfit for a URL, a
    secret that is none, a rate that is not positive.
    """
    by_name = _checked(agents, secret)
    looks = look if isinstance(look, Mapping) else {} if look is None else dict.fromkeys(by_name, look)
    access = access or Access()
    app = Flask("procsnake", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.extensions[GAMES] = store
    # People enter their snake's URL with a slash at the end or without.
    app.url_map.strict_slashes = False
    counts, limit = Metrics(), None if rate_limit is None else RateLimit(rate_limit)
    shared = Cores(usable_cores() if cores is None else cores)
    if store is not None:
        store.writer.report = counts.queue
    prefix = "" if secret is None else f"/{secret}"
    for number, (name, agent) in enumerate(by_name.items()):
        snake = _Snake(name, Decider(agent, cores=shared), looks.get(name) or Look.of(agent), store, counts)
        routes = _snake_routes(snake, limit, None if secret or not store else access)
        app.register_blueprint(routes, url_prefix=f"{prefix}/snakes/{name}")
        if number == 0:
            app.register_blueprint(routes, name="root", url_prefix=f"{prefix}/")
    _add_owners_routes(app, list(by_name), store, access, counts, has_secret=secret is not None)
    _add_answers(app, counts)
    return app


def _checked(agents: Mapping[str, Agent] | Agent, secret: str | None) -> dict[str, Agent]:
    by_name = {agents.name: agents} if isinstance(agents, Agent) else dict(agents)
    if not by_name:
        raise ConfigError("there are no agents to serve; name at least one: procsnake serve flood")
    for name in by_name:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"the agent name {name!r} can't be part of a URL; letters, digits, '.', '_' and '-' can")
    if secret is not None and not _SECRET.fullmatch(secret):
        raise ConfigError("the secret must be 16 to 100 letters, digits, '-' or '_'; make one: openssl rand -hex 16")
    return by_name


class _Snake:
    """One snake of ours: what it answers to the four calls."""

    def __init__(self, name: str, decider: Decider, look: Look, store: GameStore | None, counts: Metrics) -> None:
        self.name, self._decider, self._look, self._store, self._counts = name, decider, look, store, counts

    def info(self) -> Response:
        return jsonify(apiversion=API_VERSION, **asdict(self._look))

    def start(self) -> Response:
        body = _body()
        turn = read_move_request(body)
        if self._store is not None:
            self._store.started(self.name, turn, body, size=_size())
        self._counts.game(self.name, "start")
        return jsonify({})

    def move(self) -> Response:
        arrived = request.environ.get(ARRIVED) or time.monotonic()
        body = _body()
        turn = read_move_request(body)
        decision = self._decider.decide(turn, arrived=arrived, reported=body["you"].get("latency"))
        seconds = time.monotonic() - arrived
        if self._store is not None:
            self._store.moved(self.name, turn, body, decision, latency_ms=round(1000 * seconds, 3), size=_size())
        self._counts.moved(self.name, decision, seconds)
        return jsonify(move=MOVE_NAMES[decision.move], shout="")

    def end(self) -> Response:
        # An eliminated snake is told of the end, too, so `you` may be dead here.
        body = _body()
        if self._store is not None:
            self._store.ended(self.name, body, size=_size())
        self._counts.game(self.name, "end")
        return jsonify({})


def _snake_routes(snake: _Snake, limit: RateLimit | None, access: Access | None) -> Blueprint:
    """`access`: whose browser gets the viewer at `/`, where the snake's info is for engines; None: nobody's."""
    routes = Blueprint(re.sub(r"\W", "_", snake.name), __name__)

    @routes.get("/")
    def info() -> BaseResponse:
        page = home_page(access) if access is not None and request.blueprint == "root" else None
        return page or snake.info()

    @routes.before_request
    def limited() -> Any:
        if limit is None or limit.allows(request.remote_addr or ""):
            return None
        answer, status = _refusal(429, "too many requests from this address")
        answer.headers["Retry-After"] = "1"
        return answer, status

    for call in (snake.start, snake.move, snake.end):
        routes.post(f"/{call.__name__}")(call)
    routes.get("/openapi.json")(openapi.document)
    return routes


def _add_owners_routes(
    app: Flask, names: list[str], store: GameStore | None, access: Access, counts: Metrics, *, has_secret: bool
) -> None:
    @app.get("/health")
    def health() -> Response:
        """Moves are answered whether games can be saved or not, so only that is asked."""
        return jsonify(status="ok")

    @app.get("/metrics")
    def measured() -> Any:
        return access.refusal() or Response(counts.exposition(), content_type=metrics.CONTENT_TYPE)

    if store is not None:
        app.register_blueprint(viewer_blueprint(store, snakes=names, access=access))
        if has_secret:
            app.get("/")(lambda: home_page(access) or abort(404))


def _add_answers(app: Flask, counts: Metrics) -> None:
    """What every answer has, and what goes out when something is wrong: JSON, and never a trace."""
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(WebhookError, lambda error: _refusal(400, str(error)))
    app.register_error_handler(Exception, _unexpected)

    @app.after_request
    def finish(response: Response) -> Response:
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        counts.answered((request.endpoint or "unknown").rpartition(".")[2], response.status_code)
        return response


def _body() -> dict[str, Any]:
    try:
        body = request.get_json(force=True, silent=True)
    except RecursionError:
        body = None
    if not isinstance(body, dict):
        raise WebhookError("the body is not a JSON object; an engine sends one with game, turn, board and you")
    return body


def _size() -> int:
    return len(request.get_data())


def _refusal(status: int, reason: str) -> tuple[Response, int]:
    return jsonify(error=reason), status


def _http_error(error: HTTPException) -> BaseResponse:
    """With the headers that go with the status, such as Allow."""
    answer = error.get_response()
    if answer.status_code >= 400:
        answer.data, answer.content_type = json.dumps({"error": error.description or error.name}), "application/json"
    return answer


def _unexpected(error: Exception) -> tuple[Response, int]:
    """The log gets the trace; a stranger gets none of it."""
    current_app.logger.error("unexpected error", exc_info=error)
    return _refusal(500, "internal error")
