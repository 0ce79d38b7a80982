"""The page on which a person plays, and its JSON requests.

| request | body | answer |
|---|---|---|
| `GET /play` | | the page |
| `GET /api/play` | | the board and what is said about it (`view`) |
| `GET /api/play/choices` | | the opponents, rulesets and maps that there are |
| `POST /api/play/move` | `turn`, `move` | `view` after the turn |
| `POST /api/play/undo` | `turn` | `view` before the person's last move |
| `POST /api/play/hint` | `turn` | `move` and `text` |
| `POST /api/play/new` | any part of `setup` | `view` of the first board |

`move` is "up", "down", "left", "right", or null to go on as before. `setup` has `ruleset`, `map`,
`width`, `height`, `seed` and `opponents`.

Invalid requests are answered with status 400 or 409 and `error`, one line. The viewer's pages show
the same game."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from flask import Blueprint, Flask, Response, jsonify, request
from werkzeug.wrappers import Response as BaseResponse

from agents.registry import names
from envs.battlesnake.settings import MAP_IDS, RULESETS
from envs.battlesnake.state import MAX_SIDE, MAX_SNAKES, MIN_SIDE, MOVE_NAMES
from envs.common.errors import ConfigError, ProcsnakeError, UnknownNameError
from serve.browser.by_hand.game import HumanGame, RefusedError
from serve.browser.by_hand.table import MAX_TURNS, YOU, Setup
from serve.browser.by_hand.words import advice, ending, news
from serve.browser.own_browsers import own_app, own_pages, refusal
from serve.browser.viewer.hosted_game import SNAKE
from serve.browser.viewer.routes import Games, static_file

PAGE = "/play"
MAX_BODY_BYTES = 1 << 12
MAX_SEED = (1 << 32) - 1
_MAX_NAME = 500


class _Current:
    """Answers the viewer for the game that is played now."""

    def __init__(self, game: HumanGame) -> None:
        self._game = game

    def __getattr__(self, name: str) -> Any:
        return getattr(self._game.hosted, name)


def play_app(game: HumanGame, *, clock_s: float = 0.0) -> Flask:
    """Make the application that lets a person on this machine play `game`, and nobody elsewhere.

    `clock_s` is the initial number of seconds per turn; 0 waits for every move."""
    games = cast("Games", _Current(game))
    return own_app(games, _pages(game, clock_s), first_page=PAGE, max_bytes=MAX_BODY_BYTES)


def _pages(game: HumanGame, clock_s: float) -> Blueprint:
    pages = own_pages("play")
    pages.register_error_handler(RefusedError, lambda error: refusal(409, error))
    pages.register_error_handler(ProcsnakeError, lambda error: refusal(400, error))

    @pages.get(PAGE)
    def page() -> BaseResponse:
        return static_file("play.html")

    @pages.get("/api/play")
    def current() -> Response:
        return jsonify(view(game))

    @pages.get("/api/play/choices")
    def choices() -> Response:
        return jsonify(
            opponents=offered(game),
            rulesets=RULESETS,
            maps=list(MAP_IDS),
            sides={"least": MIN_SIDE, "most": MAX_SIDE},
            most_opponents=MAX_SNAKES - 1,
            most_seed=MAX_SEED,
            clock_ms=round(1000 * clock_s),
        )

    @pages.post("/api/play/move")
    def move() -> Response:
        body = _body("turn", "move")
        with game.lock:
            game.move(_move(body.get("move")), turn=_integer(body, "turn", 0, MAX_TURNS))
            return jsonify(view(game))

    @pages.post("/api/play/undo")
    def undo() -> Response:
        with game.lock:
            game.undo(turn=_integer(_body("turn"), "turn", 0, MAX_TURNS))
            return jsonify(view(game))

    @pages.post("/api/play/hint")
    def hint() -> Response:
        with game.lock:
            turn = _integer(_body("turn"), "turn", 0, MAX_TURNS)
            decision = game.hint(turn=turn)
            return jsonify(turn=turn, move=MOVE_NAMES[decision.move], text=advice(game, decision))

    @pages.post("/api/play/new")
    def new() -> Response:
        body = _body("ruleset", "map", "width", "height", "seed", "opponents")
        with game.lock:
            game.new(_setup(game, body))
            return jsonify(view(game))

    return pages


def view(game: HumanGame) -> dict[str, Any]:
    """Return what the page shows: the board, including dead snakes, and sentences about it."""
    with game.lock:
        settings = game.setup.settings
        return {
            "turn": game.turn,
            "you": str(YOU),
            "board": game.board(),
            "allowed": [MOVE_NAMES[move] for move in game.allowed()],
            "alive": game.is_alive,
            "over": game.is_over,
            "result": game.result,
            "news": news(game),
            "ending": ending(game),
            "replay": f"/watch/{game.referee.game['id']}/{SNAKE}",
            "setup": {
                "ruleset": settings.ruleset,
                "map": settings.map,
                "width": game.setup.width,
                "height": game.setup.height,
                "seed": game.setup.seed,
                "opponents": game.setup.opponents,
            },
        }


def offered(game: HumanGame) -> list[str]:
    """Return the opponents that the page offers: the built-in agents, and those named on the
    command line. Pages can't name files.
    """
    return list(dict.fromkeys([*game.named, *names()]))


def _setup(game: HumanGame, body: Mapping[str, Any]) -> Setup | None:
    """The next game, by what the page asks for; None if it asks for another one like the last."""
    if not body:
        return None
    old = game.setup
    opponents = body.get("opponents", list(old.opponents))
    candidates = offered(game)
    if not isinstance(opponents, list) or len(opponents) >= MAX_SNAKES:
        raise ConfigError(f"opponents is not a list of at most {MAX_SNAKES - 1} names")
    for name in opponents:
        if name not in candidates:
            raise UnknownNameError("opponent", str(name)[:_MAX_NAME], candidates)
    ruleset = str(body.get("ruleset", old.settings.ruleset))[:_MAX_NAME]
    map_id = str(body.get("map", old.settings.map))[:_MAX_NAME]
    return replace(
        old,
        opponents=tuple(opponents),
        settings=replace(old.settings, ruleset=ruleset, map=map_id),
        width=_integer(body, "width", MIN_SIDE, MAX_SIDE, default=old.width),
        height=_integer(body, "height", MIN_SIDE, MAX_SIDE, default=old.height),
        seed=_integer(body, "seed", 0, MAX_SEED, default=old.seed + 1),
    )


def _body(*allowed: str) -> dict[str, Any]:
    """The request's JSON object, which may have entries of these names."""
    body = request.get_json(silent=True)
    if not isinstance(body, dict):
        raise ConfigError("the request's body is not a JSON object")
    unknown = next((key for key in body if key not in allowed), None)
    if unknown is not None:
        raise UnknownNameError("entry of the request", unknown[:_MAX_NAME], allowed)
    return body


def _integer(
    body: Mapping[str, Any], name: str, low: int, high: int, *, default: int | None = None
) -> int:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{name} is {str(value)[:40]!r}; expected a number from {low} to {high}")
    return value


def _move(name: Any) -> int | None:
    if name is None:
        return None
    if name not in MOVE_NAMES:
        raise UnknownNameError("move", str(name)[:40], MOVE_NAMES)
    return MOVE_NAMES.index(name)
