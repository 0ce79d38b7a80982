"""What a request and our answer to it become in the database. Pure: requests in, rows out.

The names, shouts and colours of strangers are kept as text of bounded length; whoever shows them escapes them.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.agent import Decision
from envs.battlesnake.state import MOVE_NAMES
from envs.battlesnake.webhook import Turn, WebhookError, game_object, read_move_request

MAX_TEXT, MAX_NOTE_BYTES = 256, 16 * 1024


@dataclass(frozen=True)
class Event:
    """One request as the server saw it: `turn` is the request read (None: `/end`, where `you` may be dead)."""

    snake: str
    body: Mapping[str, Any]
    at: float
    """Wall-clock seconds since 1970."""
    turn: Turn | None = None
    decision: Decision | None = None
    """None for `/start`."""
    latency_ms: float | None = None
    size: int = 0
    """Bytes of the request."""


@dataclass(frozen=True)
class Rows:
    """What one event adds: a game if it is new, and a turn or the end of the game."""

    game: dict[str, Any] | None
    """A row of `games`; None if the request doesn't tell enough."""
    key: tuple[str, str, str]
    """Game id, snake, id of its body."""
    at: float
    turn: dict[str, Any] | None = None
    end: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return 600 + len(self.end or b"") + len(self.turn["data"] if self.turn else b"")


def rows_of(event: Event) -> Rows:
    """The rows of an event. Raises `WebhookError` for an `/end` that doesn't tell which game ended."""
    if event.turn is None:
        return _end_rows(event)
    key = (clean(event.turn.game_id), event.snake, clean(event.turn.ids[event.turn.you]))
    turn = None if event.decision is None else _turn_row(event, event.turn, event.decision)
    return Rows(_game_row(event, event.turn, key), key, event.at, turn=turn)


def _game_row(event: Event, turn: Turn, key: tuple[str, str, str]) -> dict[str, Any]:
    state, source = turn.state, event.body["game"].get("source", "")
    game = game_object(state.settings, key[0], timeout_ms=turn.timeout_ms, source=clean(source))
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


def _turn_row(event: Event, turn: Turn, decision: Decision) -> dict[str, Any]:
    note = json_able(decision.note)
    if len(json.dumps(note)) > MAX_NOTE_BYTES:
        note = {"dropped": f"the agent's note was longer than {MAX_NOTE_BYTES} bytes"}
    reason = decision.note.get("fallback")
    told = {
        "board": _tidy_board(event.body, turn),
        "probabilities": _four(decision.probabilities),
        "values": _four(decision.note.get("values")),
        "value": json_able(decision.value),
        "note": note,
    }
    head = told["board"]["snakes"][turn.you]["head"]
    return {
        "turn": turn.number,
        "move": int(decision.move),
        "x": head["x"],
        "y": head["y"],
        "fallback": None if reason is None else clean(reason),
        "latency_ms": event.latency_ms,
        "data": pack(told),
    }


def _end_rows(event: Event) -> Rows:
    body = event.body
    game_id, you = _identity(body, "game"), _identity(body, "you")
    key = (clean(game_id), event.snake, clean(you))
    final = _read_final(body)
    number = body.get("turn")
    is_plausible = isinstance(number, int) and 0 <= number < 1 << 30
    end: dict[str, Any] = {"turn": number if is_plausible else 0, "alive": [], "board": None}
    if final is not None:
        end |= {"alive": [clean(snake) for snake in final.ids], "board": _tidy_board(body, final, with_you=False)}
    return Rows(None if final is None else _game_row(event, final, key), key, event.at, end=pack(end))


def _read_final(body: Mapping[str, Any]) -> Turn | None:
    """The last board, read through the eyes of a snake that lives on it, because `you` may be dead; None if all are."""
    board = body.get("board")
    listed = board.get("snakes") if isinstance(board, Mapping) else None
    for snake in listed[:16] if isinstance(listed, list) else []:
        try:
            return read_move_request({**body, "you": snake})
        except WebhookError:
            continue
    return None


def _identity(body: Mapping[str, Any], name: str) -> str:
    parent = body.get(name)
    value = parent.get("id") if isinstance(parent, Mapping) else None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise WebhookError(f"{name}.id is {repr(value)[:40]}; without it nobody knows which game ended")
    return value


def _tidy_board(body: Mapping[str, Any], turn: Turn, *, with_you: bool = True) -> dict[str, Any]:
    """The board of a request that was read already, the living alone, with the fields that the API has and no others."""
    board = body["board"]
    by_id = {snake["id"]: snake for snake in board["snakes"]}
    if with_you:
        by_id[turn.ids[turn.you]] = body["you"]
    return {
        "width": turn.state.width,
        "height": turn.state.height,
        "food": _points(board.get("food")),
        "hazards": _points(board.get("hazards")),
        "snakes": [_tidy_snake(by_id[snake_id]) for snake_id in turn.ids],
    }


def _tidy_snake(snake: Mapping[str, Any]) -> dict[str, Any]:
    body, looks = _points(snake["body"]), snake.get("customizations")
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
        "customizations": {
            part: clean(looks.get(part, "")) if isinstance(looks, Mapping) else "" for part in ("color", "head", "tail")
        },
    }


def _points(points: Iterable[Mapping[str, int]] | None) -> list[dict[str, int]]:
    return [{"x": point["x"], "y": point["y"]} for point in points or ()]


def clean(text: Any) -> str:
    """Text that any database and any page takes: at most 256 characters, no NUL, no half of a surrogate pair."""
    shown = text if isinstance(text, str) else "" if text is None else repr(text)[:MAX_TEXT]
    return shown[:MAX_TEXT].encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def json_able(value: Any) -> Any:
    """The value in JSON's own types: arrays as lists, numbers that JSON lacks as None, anything else as text."""
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


def _four(numbers: Any) -> list[float | None] | None:
    """A number a move, or None if the agent gave none."""
    listed = json_able(numbers)
    is_one_each = isinstance(listed, list) and len(listed) == len(MOVE_NAMES)
    return [_number(number) for number in listed] if is_one_each else None


def _number(value: Any) -> float | None:
    return round(float(value), 6) if isinstance(value, int | float) else None


def pack(value: Any) -> bytes:
    """JSON, deflated: boards repeat themselves, so a tenth is left."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def unpack(data: bytes) -> Any:
    """What `pack` was given."""
    return json.loads(zlib.decompress(data))
