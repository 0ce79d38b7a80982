"""Turns a request and our answer to it into rows for the database. These are pure functions.

Names, shouts and colours from requests are stored as text of limited length. Escape them when
showing them."""

from __future__ import annotations

import json
import math
import reprlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from agents.agent import Decision
from envs.battlesnake.plain import hazard_layers
from envs.battlesnake.state import MAX_SIDE, MOVE_NAMES, State
from envs.battlesnake.webhook import Turn, WebhookError, game_object, most_hazards
from envs.common.strangers.bounded import inflate, parse_json

MAX_TEXT = 256
MAX_NOTE_BYTES = 16 * 1024
MAX_UNPACKED_BYTES = 16 << 20
"""The most bytes that a packed value may have once it is unpacked.

A turn has hardly more than its request with each hazard once (`serve.transport.request_body`).
"""
GAME_BYTES = 500
TURN_BYTES = 100
"""How many bytes the database needs for a game and a turn besides their texts and data: numbers,
indexes, half-empty pages.
"""
_ROWS_BYTES = 600


@dataclass(frozen=True)
class Event:
    """One request as the server saw it. `turn` is the parsed `/start` or `/move`; None for
    `/end`.
    """

    snake: str
    body: Mapping[str, Any]
    at: float
    """When it came, in wall-clock seconds since 1970."""
    turn: Turn | None = None
    decision: Decision | None = None
    """The decision; None for `/start`."""
    latency_ms: float | None = None
    final: Turn | None = None
    """`/end` as it was read: None if nobody lives on its board, or if it can't be read."""
    size: int = 0
    """The size of the request, in bytes."""


@dataclass(frozen=True)
class GameRows:
    """The rows that one event adds: a game if it is new, and a turn or the end of the game."""

    game: dict[str, Any] | None
    """The row of `games`; None if the request doesn't tell enough."""
    key: tuple[str, str, str]
    """The game's id, the snake's name, and the id of its body."""
    at: float
    turn: dict[str, Any] | None = None
    end: bytes | None = None

    @property
    def size(self) -> int:
        """The approximate size in memory, in bytes."""
        return (
            _ROWS_BYTES
            + game_bytes(self.game or {})
            + len(self.end or b"")
            + turn_bytes(self.turn or {})
        )


def game_bytes(row: Mapping[str, Any]) -> int:
    """Return how many bytes the database needs for a new row of `games`, without turns and end."""
    return GAME_BYTES + sum(len(value) for value in row.values() if isinstance(value, str))


def turn_bytes(row: Mapping[str, Any]) -> int:
    """Return how many bytes the database needs for a row of `turns`."""
    return TURN_BYTES + len(row.get("fallback") or "") + len(row.get("data", b""))


def rows_of(event: Event) -> GameRows:
    """Return the rows of an event. Raises `WebhookError` for an `/end` without the game's id."""
    if event.turn is None:
        return _end_rows(event)
    key = (clean(event.turn.game_id), event.snake, clean(event.turn.ids[event.turn.you]))
    if event.decision is None:
        turn = None
    else:
        turn = _turn_row(event, event.turn, event.decision)
    return GameRows(_game_row(event, event.turn, key), key, event.at, turn=turn)


def _game_row(event: Event, turn: Turn, key: tuple[str, str, str]) -> dict[str, Any]:
    state = turn.state
    source = event.body["game"].get("source", "")
    game = game_object(state.settings, key[0], timeout_ms=turn.timeout_ms, source=clean(source))
    # It says which engine played.
    game["ruleset"]["version"] = _version(event.body["game"])
    return {
        "game_id": key[0],
        "snake": key[1],
        "you": key[2],
        "game": json.dumps(game),
        "width": state.width,
        "height": state.height,
        "names": json.dumps([clean(name) for name in turn.names]),
        "first_turn": turn.number,
        "started": event.at,
        "seen": event.at,
    }


def _version(game: Mapping[str, Any]) -> str:
    ruleset = game.get("ruleset")
    if isinstance(ruleset, Mapping):
        return clean(ruleset.get("version", ""))
    return ""


def _turn_row(event: Event, turn: Turn, decision: Decision) -> dict[str, Any]:
    note = json_able(decision.note)
    if len(json.dumps(note)) > MAX_NOTE_BYTES:
        note = {"dropped": f"the agent's note was longer than {MAX_NOTE_BYTES} bytes"}
    reason = decision.note.get("fallback")
    content = {
        "board": _tidy_board(event.body, turn),
        "probabilities": numbers_by_move(decision.probabilities),
        "values": numbers_by_move(decision.note.get("values")),
        "value": json_able(decision.value),
        "note": note,
    }
    head = content["board"]["snakes"][turn.you]["head"]
    return {
        "turn": turn.number,
        "move": int(decision.move),
        "x": head["x"],
        "y": head["y"],
        "fallback": clean(reason) if reason is not None else None,
        "latency_ms": event.latency_ms,
        "data": pack(content),
    }


def _end_rows(event: Event) -> GameRows:
    body = event.body
    game_id = _identity(body, "game")
    you = _identity(body, "you")
    key = (clean(game_id), event.snake, clean(you))
    final = event.final
    number = body.get("turn")
    if not isinstance(number, int) or not 0 <= number < 1 << 30:
        number = 0
    if final is None:
        end = pack({"turn": number, "alive": [], "board": None})
        return GameRows(None, key, event.at, end=end)
    alive = [clean(snake) for snake in final.ids]
    board = _tidy_board(body, final, with_you=False)
    end = pack({"turn": number, "alive": alive, "board": board})
    return GameRows(_game_row(event, final, key), key, event.at, end=end)


def _identity(body: Mapping[str, Any], name: str) -> str:
    parent = body.get(name)
    value = parent.get("id") if isinstance(parent, Mapping) else None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise WebhookError(
            f"{name}.id is {reprlib.repr(value)[:40]}; without it nobody knows which game ended"
        )
    return value


def _tidy_board(body: Mapping[str, Any], turn: Turn, *, with_you: bool = True) -> dict[str, Any]:
    """The board of a request that was read already, the living alone, with the fields that the API
    has and no others.
    """
    board = body["board"]
    you = turn.ids[turn.you] if with_you else None

    def entry(snake_id: str) -> dict[str, Any]:
        if snake_id == you:
            return body["you"]
        return _entry(board["snakes"], snake_id, turn.state)

    return {
        "width": turn.state.width,
        "height": turn.state.height,
        "food": [point for point in _points(board.get("food")) if _on_board(point, turn.state)],
        **_stacked(hazard_layers(turn.state)),
        "snakes": [_tidy_snake(entry(snake_id)) for snake_id in turn.ids],
    }


def _entry(listed: list[dict[str, Any]], snake_id: str, state: State) -> dict[str, Any]:
    """The entry of a living snake. A stranger's list may have its id again, dead, and an entry
    behind it may hold anything.
    """
    entries = [snake for snake in listed if snake["id"] == snake_id]
    return next((snake for snake in entries[:-1] if _lives(snake, state)), entries[-1])


def _lives(snake: Mapping[str, Any], state: State) -> bool:
    body = snake.get("body") or ()
    return snake["health"] > 0 and bool(body) and all(_on_board(point, state) for point in body)


def _on_board(point: Mapping[str, int], state: State) -> bool:
    return 0 <= point["x"] < state.width and 0 <= point["y"] < state.height


def _tidy_snake(snake: Mapping[str, Any]) -> dict[str, Any]:
    body = _points(snake["body"])
    looks = snake.get("customizations")
    if not isinstance(looks, Mapping):
        looks = {}
    return {
        "id": clean(snake["id"]),
        "name": clean(snake.get("name", "")),
        "latency": clean(snake.get("latency", "")),
        "health": snake["health"],
        "body": body,
        "head": body[0],
        "length": len(body),
        "shout": clean(snake.get("shout", "")),
        "squad": clean(snake.get("squad", "")),
        "customizations": {part: clean(looks.get(part, "")) for part in ("color", "head", "tail")},
    }


def _stacked(hazards: Mapping[tuple[int, int], int]) -> dict[str, list[Any]]:
    """A board's `hazards` with each point once, and `layers`, which counts the hazards on each
    point if there are several on any.
    """
    stacked: dict[str, list[Any]] = {"hazards": [{"x": x, "y": y} for x, y in hazards]}
    if max(hazards.values(), default=1) > 1:
        stacked["layers"] = list(hazards.values())
    return stacked


def _unstack(board: dict[str, Any]) -> None:
    """Turn a board's `layers`, if it has any, into that many equal `hazards`."""
    layers = board.pop("layers", None)
    if layers is None:
        return
    if sum(layers) > most_hazards(MAX_SIDE, MAX_SIDE) or min(layers, default=0) < 0:
        raise ValueError(f"the board has more hazards than a game can have ({sum(layers)})")
    hazards: list[dict[str, int]] = []
    for point, count in zip(board["hazards"], layers, strict=True):
        hazards.extend(dict(point) for _ in range(count))
    board["hazards"] = hazards


def _points(points: Iterable[Mapping[str, int]] | None) -> list[dict[str, int]]:
    return [{"x": point["x"], "y": point["y"]} for point in points or ()]


def clean(text: Any) -> str:
    """Return text that is safe for any database and page: at most 256 characters, no NUL, no half
    of a surrogate pair.
    """
    if text is None:
        return ""
    if not isinstance(text, str):
        text = reprlib.repr(text)
    return text[:MAX_TEXT].encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def json_able(value: Any) -> Any:
    """Return the value in JSON's types.

    Arrays become lists, numbers that JSON lacks become None, anything else becomes text.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean(key): json_able(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_able(entry) for entry in value]
    return clean(value)


def numbers_by_move(numbers: Any) -> list[float | None] | None:
    """Return one number per move, or None if the agent gave none."""
    listed = json_able(numbers)
    is_one_each = isinstance(listed, list) and len(listed) == len(MOVE_NAMES)
    if is_one_each:
        return [_number(number) for number in listed]
    return None


def _number(value: Any) -> float | None:
    if isinstance(value, int | float):
        return round(float(value), 6)
    return None


def pack(value: Any) -> bytes:
    """Return the value as compressed JSON, a tenth of the size because boards repeat themselves."""
    try:
        text = orjson.dumps(value)
    except TypeError:  # Such as an integer of more than 64 bits in an agent's note.
        text = json.dumps(value, separators=(",", ":")).encode()
    return zlib.compress(text, 1)


def unpack(data: bytes, *, stacked: bool = False) -> Any:
    """Return the packed value, with all hazards of its `board`. If `stacked`, each hazard point
    appears once, and `layers`, if present, counts the layers of each.

    Raises `ValueError` for data that `pack` can't have written.
    """
    value = parse_json(inflate(data, MAX_UNPACKED_BYTES))
    if not stacked and isinstance(value, dict) and isinstance(value.get("board"), dict):
        _unstack(value["board"])
    return value
