"""The viewer's routes: pages and files, their JSON requests, and the official board's protocol.

`/` (for browsers), `/watch` and `/watch/<game>/<snake>` are pages. `/api/…` is JSON.
`/games/<game>` and `/games/<game>/events` give a game in the official engine's form, and
`/share/<key>/` the same to anybody with the link. Untrusted text is sent as JSON only."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from flask import Blueprint, Response, abort, jsonify, redirect, request, send_from_directory
from werkzeug.http import parse_date
from werkzeug.wrappers import Response as BaseResponse

from agents.measure.pages import logo
from envs.battlesnake.recording import Recording, RecordingError
from envs.common.palette import style_sheet
from serve.archive.reader import GamesUnavailableError
from serve.archive.rows import MAX_TEXT
from serve.browser.viewer import engine
from serve.browser.viewer.access import Access
from serve.transport.exchange import Exchange
from serve.transport.spectators import SpectatorSlots

OFFICIAL_BOARD = "https://board.battlesnake.com"
"""The origin of the only web pages elsewhere that may read games, in the engine's protocol."""
GAMES_PER_PAGE = 25
MAX_GAMES = 100
TURNS_PER_ANSWER = 500

STATIC = Path(__file__).parent / "static"
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# Snakes of games fetched from Arena have any name. It is only compared with those that are kept,
# and PostgreSQL takes no NUL.
_SNAKE = re.compile(rf"[^\0]{{1,{MAX_TEXT}}}")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src"
        " 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Games(Protocol):
    """Games that can be watched: a `GameArchive` or a `HostedGame`. The archive documents the
    entries.
    """

    def games(
        self, *, live: bool | None = None, limit: int = 50, offset: int = 0
    ) -> list[dict[str, Any]]:
        """Return games, the last seen first."""

    def bodies(self, game_id: str) -> list[dict[str, Any]]:
        """Return one game as each of its known snakes saw it. The snake that was asked last comes
        first.
        """

    def game(self, game_id: str, snake: str, you: str | None = None) -> dict[str, Any] | None:
        """Return one game as one snake saw it."""

    def turns(
        self,
        game_id: str,
        snake: str,
        *,
        since: int = 0,
        you: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the game's turns from number `since` on; with a `limit`, at most that many."""

    def recording(self, game_id: str, snake: str, you: str | None = None) -> Recording | None:
        """Return the game as a recording. Raises `RecordingError` if recordings can't hold it."""

    def statistics(self) -> dict[str, Any]:
        """Return the figures of all games."""


def viewer_blueprint(store: Games, *, access: Access | None = None) -> Blueprint:
    """Make the viewer's routes, for an application's root. `access` decides who may watch (default:
    this machine only).
    """
    access = access or Access()
    viewer = Blueprint("viewer", __name__)
    viewer.before_request(partial(_refusal, access))
    viewer.after_request(with_headers)
    viewer.register_error_handler(
        GamesUnavailableError, lambda error: (jsonify(error=str(error)), 503)
    )
    viewer.register_error_handler(
        RecordingError, lambda error: (jsonify(error=f"no recording holds this game: {error}"), 404)
    )
    _add_pages(viewer, access)
    _add_api(viewer, store, access)
    _add_engine(viewer, store)
    return viewer


def home_page(access: Access) -> BaseResponse | None:
    """Return the page for `GET /` to a browser that may watch.

    Otherwise return None, so that engines get the snake's info.
    """
    # Access first: a long Accept takes long to read.
    if not (_brings_token(access) or access.allows()):
        return None
    accept = request.accept_mimetypes
    if accept["text/html"] <= accept["application/json"]:
        return None
    return with_headers(_page("games.html", access))


def _page(name: str, access: Access) -> BaseResponse:
    """A page; or, if the token came in its address, the cookie and the address without it."""
    if _brings_token(access):
        return access.remember(redirect(quote(request.path)))
    return static_file(name)


def static_file(filename: str) -> BaseResponse:
    """Return one of the pages, scripts and styles, or raise `NotFound`."""
    if filename == "palette.css":
        return Response(style_sheet(), mimetype="text/css")
    if filename == "favicon.svg":
        return Response(logo(), mimetype="image/svg+xml")
    return send_from_directory(STATIC, filename, conditional=_has_possible_dates())


def _has_possible_dates() -> bool:
    """Whether the answer may depend on the request's dates. A year that Python's dates don't reach
    would end it in an error.
    """
    try:
        for name in ("If-Modified-Since", "If-Range"):
            parse_date(request.headers.get(name))
    except OverflowError:
        return False
    return True


def _brings_token(access: Access) -> bool:
    return access.is_token(request.args.get("token", ""))


def _refusal(access: Access) -> Any:
    arguments = request.view_args or {}
    if not _ID.fullmatch(arguments.get("game_id", "x")):
        abort(404, "no such game; its name would be letters, digits, '.', '_', ':' and '-'")
    if not _SNAKE.fullmatch(arguments.get("snake", "x")):
        abort(404, f"no such game; its snake would be called by 1 to {MAX_TEXT} characters")
    if "key" in arguments:
        if access.is_share_key(arguments["game_id"], arguments["key"]):
            return None
        return abort(404, "no such game")
    if _brings_token(access):
        return None
    return access.refusal()


def with_headers(response: BaseResponse) -> BaseResponse:
    """Add headers that restrict the answer's page to what it needs, and forbid caching. For use as
    `after_request`.
    """
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    response.vary.update(("Accept", "Cookie", "Origin"))
    return response


def _add_pages(viewer: Blueprint, access: Access) -> None:
    viewer.get("/viewer/<path:filename>", endpoint="static")(static_file)

    @viewer.get("/watch")
    def games_page() -> BaseResponse:
        return _page("games.html", access)

    @viewer.get("/watch/<game_id>/<snake>")
    def game_page(game_id: str, snake: str) -> BaseResponse:
        return _page("game.html", access)


def _add_api(viewer: Blueprint, store: Games, access: Access) -> None:
    def known_game(game_id: str, snake: str) -> dict[str, Any]:
        return store.game(game_id, snake, request.args.get("you")) or abort(
            404, "no such game; it may have been cleared away"
        )

    @viewer.get("/api/games")
    def list_games() -> Response:
        live = {"1": True, "0": False}.get(request.args.get("live", ""))
        limit = _number("limit", GAMES_PER_PAGE, most=MAX_GAMES)
        offset = _number("offset", 0)
        # One more than asked for tells whether there are more.
        games = store.games(live=live, limit=limit + 1, offset=offset)
        return jsonify(games=games[:limit], more=len(games) > limit)

    @viewer.get("/api/games/<game_id>/<snake>")
    def one_game(game_id: str, snake: str) -> Response:
        return jsonify(
            game=known_game(game_id, snake),
            share_key=access.share_key(game_id),
            has_websockets=Exchange.of(request.environ) is not None,
        )

    @viewer.get("/api/games/<game_id>/<snake>/turns")
    def turns(game_id: str, snake: str) -> Response:
        # The game first: turns that are added meanwhile then belong to a game that is still said to
        # go on.
        game = known_game(game_id, snake)
        its_turns = partial(store.turns, game_id, snake, you=game["you"])
        page = its_turns(since=_number("since", 0), limit=TURNS_PER_ANSWER)
        more = bool(page and its_turns(since=page[-1]["turn"] + 1, limit=1))
        return jsonify(game=game, turns=page, more=more)

    @viewer.get("/api/games/<game_id>/<snake>/recording")
    def recording(game_id: str, snake: str) -> Response:
        game = store.recording(game_id, snake, known_game(game_id, snake)["you"]) or abort(
            404, "no turn of it is known yet"
        )
        lines = [game.game, *game.requests]
        if game.result:
            lines.append(game.result)
        text = "".join(json.dumps(line) + "\n" for line in lines)
        answer = Response(text, mimetype="application/x-ndjson")
        answer.headers.set("Content-Disposition", "attachment", filename=f"{game_id}.jsonl")
        return answer

    @viewer.get("/api/statistics")
    def statistics() -> Response:
        return jsonify(store.statistics())


def _number(name: str, default: int, *, most: int = 1 << 30) -> int:
    text = request.args.get(name, str(default))
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) > most:
        abort(400, f"{name} is {text[:40]!r}; expected a number from 0 to {most}")
    return int(text)


def _add_engine(viewer: Blueprint, store: Games) -> None:
    places = SpectatorSlots()

    def as_last_seen(game_id: str) -> dict[str, Any] | None:
        return next(iter(store.bodies(game_id)), None)

    def find(game_id: str) -> dict[str, Any]:
        return as_last_seen(game_id) or abort(404, "no such game")

    @viewer.get("/games/<game_id>")
    @viewer.get("/share/<key>/games/<game_id>")
    def engine_game(game_id: str, key: str = "") -> Response:
        answer = jsonify(Game=engine.game_object(find(game_id)))
        if request.origin == OFFICIAL_BOARD:
            answer.access_control_allow_origin = request.origin
        return answer

    @viewer.get("/games/<game_id>/events", websocket=True)
    @viewer.get("/share/<key>/games/<game_id>/events", websocket=True)
    def engine_events(game_id: str, key: str = "") -> BaseResponse:
        if request.origin not in (None, request.host_url.rstrip("/"), OFFICIAL_BOARD):
            abort(403, f"pages of {request.origin[:100]} may not watch")
        exchange = Exchange.of(request.environ)
        if exchange is None or exchange.spectator is None:
            abort(
                501,
                "this server has no WebSockets: watch at /watch, or run it with procsnake serve",
            )
        game = find(game_id)
        # One snake's turns go on with those of the others, so any of them will do. Whether the game
        # goes on is asked of the snake that was seen last, time and again.
        about = partial(as_last_seen, game_id)
        turns = partial(
            store.turns, game_id, game["snake"], you=game["you"], limit=TURNS_PER_ANSWER
        )
        return places.show(exchange.spectator, partial(engine.events, about, turns))
