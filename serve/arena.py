"""The Battlesnake API v1 as a Flask application: engines call it, and agents answer.

`GET /` returns the snake's info; `POST /start`, `/move` and `/end` carry the game. Several snakes
live at `/snakes/<name>/`, and the first one also answers at the root. `/health`, `/metrics` and the
viewer's pages (`serve.browser.viewer`) are for whoever runs the server.

Source: docs.battlesnake.com/api.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from flask import Blueprint, Flask, Response, abort, current_app, g, jsonify, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from agents.agent import Agent, Decision
from envs.battlesnake.plain.safety import safest_plain_move
from envs.battlesnake.state import MOVE_NAMES
from envs.battlesnake.webhook import Turn, UnheldBoardError, WebhookError
from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from serve import openapi
from serve.archive.store import GameStore
from serve.browser.viewer import Access, home_page, is_a_web_pages, viewer_blueprint
from serve.customizations import Look
from serve.monitoring import metrics
from serve.monitoring.draining import DRAINING, Draining
from serve.monitoring.metrics import Metrics
from serve.timing.cores import Cores
from serve.timing.deadline import MAX_THINK_MS, Decider
from serve.timing.game_memory import GameMemory
from serve.transport.exchange import Exchange
from serve.transport.rate_limit import NewGames, RateLimit
from serve.transport.request_body import MAX_BODY_BYTES, TooLargeError, read_body
from serve.transport.trusted_proxies import TRUSTED_PROXIES, TrustedProxies

__all__ = ["Look", "create_app"]

API_VERSION = "1"
GAMES = "procsnake.games"
"""Key of an application's `extensions` at which it keeps its `GameStore` (or None)."""
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
    trusted_proxies: Iterable[str] = (),
    drain_s: float = 0.0,
    cores: int | None = None,
    max_think_ms: float = MAX_THINK_MS,
) -> Flask:
    """Make the application for these agents, by name. The first agent also answers at `/`.

    * `look` is the look of all snakes, or a look by name (default: each has its own).
    * `store` records games, which can then be watched (default: none).
    * `access` decides who may watch and read metrics (default: this machine only).
    * `secret` has at least 16 letters and digits. It is the first part of the snakes' paths, and
      without it they answer nobody.
    * `rate_limit` is the number of requests per second from one address.
    * `trusted_proxies` are the addresses or networks of proxies whose X-Forwarded-For is believed.
    * `drain_s` is how many seconds the server keeps answering after SIGTERM, while `/health`
      returns 503.
    * `cores` is how many agents think at a time (default: as many as there are cores).
    * `max_think_ms` is how long one call may think at most.

    Bodies are limited as `serve.transport.request_body` says. A malformed request gets 400 with a
    JSON reason. `serve.timing.deadline` answers for an agent that fails or is late. On a board that
    the engine can't represent, the answer is the safest move. So `/move` always gets a legal
    answer.

    Raises `ConfigError` without agents, for names that can't be part of a URL, for a bad secret,
    and for a rate that isn't positive."""
    agents_by_name = _checked(agents, secret)
    looks = _looks(look, agents_by_name)
    access = access or Access()
    app = Flask("procsnake", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.extensions[GAMES] = store
    app.extensions[DRAINING] = Draining(drain_s)
    app.extensions[TRUSTED_PROXIES] = TrustedProxies(trusted_proxies)
    # People enter their snake's URL with a slash at the end or without.
    app.url_map.strict_slashes = False
    counts = Metrics()
    limit = RateLimit(rate_limit) if rate_limit is not None else None
    new_games = NewGames()
    memory = GameMemory()
    # All snakes think on the same cores.
    shared_cores = Cores(cores if cores is not None else usable_cores())
    if store is not None:
        store.writer.report = counts.queue
    prefix = ""
    home_access: Access | None = None
    if secret is not None:
        prefix = f"/{secret}"
    elif store is not None:
        # The first snake and the viewer share the root: engines get one, browsers the other.
        home_access = access
    for number, (name, agent) in enumerate(agents_by_name.items()):
        decider = Decider(agent, cores=shared_cores, memory=memory, max_think_ms=max_think_ms)
        snake = _Snake(
            name, decider, looks.get(name) or Look.of(agent), store, counts, new_games, memory
        )
        routes = _snake_routes(snake, f"snake{number}", limit, home_access)
        app.register_blueprint(routes, url_prefix=f"{prefix}/snakes/{name}")
        if number == 0:
            app.register_blueprint(routes, name="root", url_prefix=f"{prefix}/")
    _add_owners_routes(app, store, access, counts, has_secret=secret is not None)
    _add_answers(app, counts)
    return app


def _looks(look: Look | Mapping[str, Look] | None, names: Iterable[str]) -> Mapping[str, Look]:
    """The looks by name that `create_app` was given; a snake without one has its agent's own."""
    if look is None:
        return {}
    if isinstance(look, Look):
        return dict.fromkeys(names, look)
    return look


def _checked(agents: Mapping[str, Agent] | Agent, secret: str | None) -> dict[str, Agent]:
    if isinstance(agents, Agent):
        agents = {agents.name: agents}
    if not agents:
        raise ConfigError(
            "there are no agents to serve.",
            next_commands={"name at least one": ("serve", "flood")},
        )
    for name in agents:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"the agent name {name!r} can't be part of a URL; letters, digits, '.', '_' and"
                " '-' can"
            )
    if secret is not None and not _SECRET.fullmatch(secret):
        raise ConfigError(
            "the secret must be 16 to 100 letters, digits, '-' or '_'; make one: openssl rand"
            " -hex 16"
        )
    return dict(agents)


class _Snake:
    """One snake of ours: what it answers to the four calls."""

    def __init__(
        self,
        name: str,
        decider: Decider,
        look: Look,
        store: GameStore | None,
        counts: Metrics,
        new_games: NewGames,
        memory: GameMemory,
    ) -> None:
        self.name = name
        self._decider = decider
        self._look = look
        self._counts = counts
        self._store = store
        self._new_games = new_games
        self._memory = memory

    def info(self) -> Response:
        return jsonify(apiversion=API_VERSION, **asdict(self._look))

    def start(self) -> Response:
        body = _body()
        try:
            turn = self._memory.start(body)
        except UnheldBoardError:
            return jsonify({})
        g.game = turn.game_id  # for the log
        if (store := self._keeper(body)) is not None:
            store.started(self.name, turn, body, size=g.size)
        self._counts.game(self.name, "start")
        return jsonify({})

    def move(self) -> Response:
        exchange = Exchange.of(request.environ)
        arrived = exchange.arrived if exchange is not None else time.monotonic()
        body = _body()
        try:
            turn = self._memory.read_move(body)
        except UnheldBoardError as error:
            return self._move_unheld(error, arrived)
        g.game = turn.game_id
        last_word = _LastWord(exchange) if exchange is not None else None
        decision = self._decider.decide(
            turn,
            arrived=arrived,
            reported=body["you"].get("latency"),
            last_word=last_word,
        )
        seconds = time.monotonic() - arrived
        if (store := self._keeper(body)) is not None:
            store.moved(
                self.name, turn, body, decision, latency_ms=round(1000 * seconds, 3), size=g.size
            )
        self._counts.moved(self.name, decision, seconds)
        return _move(decision.move)

    def _move_unheld(self, error: UnheldBoardError, arrived: float) -> Response:
        """Answer with the safest move on a board that the engine can't hold, such as a huge one.

        No agent can play there, and no archive can show it.
        """
        rules = error.settings.rules(error.board["width"], error.board["height"])
        move = safest_plain_move(error.board, error.hazards, error.you, rules)
        self._counts.moved(
            self.name, Decision(move, note={"fallback": "board"}), time.monotonic() - arrived
        )
        return _move(move)

    def end(self) -> Response:
        body = _body()
        if (store := self._keeper(body)) is not None:
            store.ended(self.name, body, self._last_board(body), size=g.size)
        self._counts.game(self.name, "end")
        return jsonify({})

    def _last_board(self, body: dict[str, Any]) -> Turn | None:
        """The board of `/end`; None if nobody lives on it, or if it can't be read."""
        try:
            return self._memory.read_end(body)
        except WebhookError:
            return None

    def _keeper(self, body: dict[str, Any]) -> GameStore | None:
        """The store in which the game at hand is kept; None if it isn't kept."""
        if self._store is None:
            return None
        # Only a hash is remembered: what a stranger sends to /end may be long.
        key = hash((self.name, _id_in(body, "game"), _id_in(body, "you")))
        if self._new_games.keeps(key, request.remote_addr or ""):
            return self._store
        return None


def _id_in(body: dict[str, Any], name: str) -> str:
    """The text of `body[name]["id"]`, whatever a stranger put there."""
    part = body.get(name)
    if isinstance(part, dict):
        return str(part.get("id"))
    return ""


class _LastWord:
    """The event loop, which answers with a move when time is up."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.claim = exchange.claim

    def at(self, due: float, move: int) -> None:
        answer = _move(move)
        answer.headers.extend(_HEADERS)
        self._exchange.answer_at(due, answer)


def _move(move: int) -> Response:
    return jsonify(move=MOVE_NAMES[move], shout="")


def _snake_routes(
    snake: _Snake, name: str, limit: RateLimit | None, access: Access | None
) -> Blueprint:
    """Make the blueprint called `name`: a snake's four calls and their description.

    Whoever `access` allows gets the viewer's page at `/` in a browser. With None, everybody gets
    the snake's info there, as engines do."""
    routes = Blueprint(name, __name__)

    @routes.get("/")
    def info() -> BaseResponse:
        if access is not None and request.blueprint == "root":
            return home_page(access) or snake.info()
        return snake.info()

    @routes.before_request
    def limited() -> Any:
        if limit is None or limit.allows(request.remote_addr or ""):
            return None
        answer, status = _refusal(429, "too many requests from this address")
        answer.headers["Retry-After"] = "1"
        return answer, status

    @routes.before_request
    def not_from_a_page() -> Any:
        # A page anywhere can have a browser on this machine post to it, and would write into the
        # owner's games.
        if request.method == "POST" and is_a_web_pages(request):
            return _refusal(403, "web pages can't play: engines send no Origin")
        return None

    for call in (snake.start, snake.move, snake.end):
        routes.post(f"/{call.__name__}")(call)
    routes.get("/openapi.json")(openapi.document)
    return routes


def _add_owners_routes(
    app: Flask, store: GameStore | None, access: Access, counts: Metrics, *, has_secret: bool
) -> None:
    @app.get("/health")
    def health() -> tuple[Response, int]:
        """Moves are answered whether games can be saved or not, so only that is asked, and whether
        it will go on.
        """
        if app.extensions[DRAINING].has_begun:
            return jsonify(status="draining"), 503
        return jsonify(status="ok"), 200

    @app.get("/metrics")
    def measured() -> Any:
        return access.refusal() or Response(counts.exposition(), content_type=metrics.CONTENT_TYPE)

    if store is not None:
        app.register_blueprint(viewer_blueprint(store, access=access))
        if has_secret:
            app.get("/")(lambda: home_page(access) or abort(404))


def _add_answers(app: Flask, counts: Metrics) -> None:
    """Add what every answer has, and the answers when something is wrong: JSON, and never a
    trace.
    """
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(WebhookError, lambda error: _refusal(400, str(error)))
    app.register_error_handler(
        RecursionError, lambda error: _refusal(400, "the body is nested too deeply")
    )
    app.register_error_handler(Exception, _unexpected)

    @app.after_request
    def finish(response: Response) -> Response:
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        counts.answered((request.endpoint or "unknown").rpartition(".")[2], response.status_code)
        return response


def _body() -> dict[str, Any]:
    length = request.content_length
    # Flask itself would put megabytes together from small pieces.
    if length is None or length > MAX_BODY_BYTES:
        data = request.get_data()
    else:
        data = request.environ["wsgi.input"].read(length)
    try:
        body, g.size = read_body(data)
    except TooLargeError as error:
        abort(413, str(error))
    return body


def _refusal(status: int, reason: str) -> tuple[Response, int]:
    return jsonify(error=reason), status


def _http_error(error: HTTPException) -> BaseResponse:
    """With the headers that go with the status, such as Allow."""
    answer = error.get_response()
    if answer.status_code >= 400:
        answer.data = json.dumps({"error": error.description or error.name})
        answer.content_type = "application/json"
    return answer


def _unexpected(error: Exception) -> tuple[Response, int]:
    """The log gets the trace; a stranger gets none of it."""
    current_app.logger.error("unexpected error", exc_info=error)
    return _refusal(500, "internal error")
