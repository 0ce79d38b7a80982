"""Describes what our snakes answer, as an OpenAPI 3.1 document: the Battlesnake API v1 with the
limits of `read_move_request`.

A schema can't say that `you` must be alive, or that a body must be connected. So a request that
fits the schema may still get 400, but never a 5xx. Source of the fields: docs.battlesnake.com/api.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from envs.battlesnake.settings import MAP_IDS, RULESETS
from envs.battlesnake.state import FULL_HEALTH, MAX_SIDE, MIN_SIDE, MOVE_NAMES
from envs.battlesnake.webhook import MAX_LISTED_SNAKES, MAX_TEXT, MAX_TURN, MOST_SIDE

Schema = dict[str, Any]

MAX_SHOUT = 256


def document() -> dict[str, Any]:
    """Return the document. Its paths are relative to where it is served, so that it doesn't reveal
    a secret path.
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "A Battlesnake",
            "version": _version(),
            "description": (
                "Webhook API v1, served by procsnake. Unknown fields are ignored; (0, 0) is the"
                " bottom left."
            ),
        },
        "servers": [{"url": "./"}],
        "paths": {
            "/": {"get": _call("info", "Who this snake is.", "Info")},
            "/start": {"post": _call("start", "A game begins.", "Nothing", takes_body=True)},
            "/move": {
                "post": _call(
                    "move", "Where to? Always answered in the game's time.", "Move", takes_body=True
                )
            },
            "/end": {"post": _call("end", "A game is over.", "Nothing", takes_body=True)},
        },
        "components": {"schemas": _schemas()},
    }


def _version() -> str:
    try:
        return version("procsnake")
    except PackageNotFoundError:
        return "0"


def _call(name: str, summary: str, answer: str, *, takes_body: bool = False) -> dict[str, Any]:
    answers = {
        "200": _answer(summary, answer),
        "429": _answer("Too many requests from this address.", "Error"),
    }
    operation: dict[str, Any] = {"operationId": name, "summary": summary, "responses": answers}
    if takes_body:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref("Request")}},
        }
        answers["400"] = _answer(
            "The body is not a game, or `you` can't be asked. Says why.", "Error"
        )
        answers["403"] = _answer("The request comes from a web page.", "Error")
        answers["413"] = _answer(
            "Beside equal hazards, the body is larger than 256 KiB or holds more than 10 240"
            " values.",
            "Error",
        )
    return operation


def _answer(description: str, schema: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": _ref(schema)}}}


def _schemas() -> dict[str, Schema]:
    return _request_schemas() | _answer_schemas()


def _request_schemas() -> dict[str, Schema]:
    return {
        "Request": _object(
            {
                "game": _ref("Game"),
                "turn": _whole(0, MAX_TURN),
                "board": _ref("Board"),
                "you": _ref("Snake"),
            },
            required=["game", "board", "you"],
        ),
        "Game": _object(
            {
                "id": _text(),
                "ruleset": {
                    "description": "What isn't known here is read as standard.",
                    "properties": {
                        "name": {"examples": list(RULESETS)},
                        "settings": _ref("Settings"),
                    },
                },
                "map": {"examples": ["standard", *MAP_IDS][:5]},
                "timeout": {
                    "description": "Milliseconds for an answer, the way there and back included."
                },
                "source": _any_text(),
            },
            required=["id"],
        ),
        "Settings": {
            "properties": {
                **{
                    name: _number()
                    for name in ("foodSpawnChance", "minimumFood", "hazardDamagePerTurn")
                },
                "royale": {"properties": {"shrinkEveryNTurns": _number()}},
            }
        },
        "Board": _object(
            {
                "width": _side(),
                "height": _side(),
                "food": _points(),
                "hazards": _points(),
                "snakes": {"type": "array", "items": _ref("Snake"), "maxItems": MAX_LISTED_SNAKES},
            },
            required=["width", "height", "snakes"],
        ),
        "Snake": _object(
            {
                "id": _text(),
                "name": {"description": f"No move depends on it; {MAX_TEXT} characters are kept."},
                "health": _whole(0, FULL_HEALTH),
                "body": {**_points(), "description": "Head first."},
                "latency": {
                    **_any_text(),
                    "description": (
                        'How long the last answer took, in milliseconds; "0" on the first turn.'
                    ),
                },
                "shout": _any_text(),
                "squad": _any_text(),
                "customizations": {"type": "object"},
            },
            required=["id", "health", "body"],
        ),
        "Point": _object(
            {axis: _whole(-MOST_SIDE, 2 * MOST_SIDE) for axis in ("x", "y")}, required=["x", "y"]
        ),
    }


def _answer_schemas() -> dict[str, Schema]:
    return {
        "Info": _object(
            {
                "apiversion": {"const": "1"},
                "color": {"type": "string", "pattern": "^#[0-9A-Fa-f]{6}$"},
                **{name: _any_text() for name in ("head", "tail", "author", "version")},
            },
            required=["apiversion", "author", "color", "head", "tail", "version"],
        ),
        "Move": _object(
            {
                "move": {"enum": list(MOVE_NAMES)},
                "shout": {"type": "string", "maxLength": MAX_SHOUT},
            },
            required=["move"],
        ),
        "Nothing": {"type": "object", "maxProperties": 0},
        "Error": _object({"error": _any_text()}, required=["error"]),
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Schema], *, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _side() -> Schema:
    description = (
        f"Agents play sides of {MIN_SIDE} to {MAX_SIDE}; elsewhere the answer is the safest move."
    )
    return {**_whole(1, MOST_SIDE), "description": description}


def _number() -> Schema:
    """A setting of the official program, which takes any integer."""
    return {
        "description": (
            "Read as the nearest integer that makes a difference. Without an integer, the default"
            " holds."
        )
    }


def _text() -> Schema:
    return {"type": "string", "maxLength": MAX_TEXT}


def _any_text() -> Schema:
    return {"type": "string"}


def _points() -> Schema:
    return {"type": "array", "items": _ref("Point")}
