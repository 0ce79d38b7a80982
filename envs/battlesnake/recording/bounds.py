"""Checks an entry of a recording before any memory is allocated for the sizes that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envs.battlesnake.state import ABSENT, CAUSE_NAMES, MAX_SIDE, MIN_SIDE

MAX_KNOWN_SNAKES = 64
_MAX_TURN = 1 << 30
_MAX_BODY = 1 << 13
_MAX_HEALTH = 1 << 15


def check_request(request: Mapping[str, Any]) -> None:
    """Raise `ValueError`, `KeyError` or `TypeError`, naming them, for sizes, counts or types that
    no recorder writes.
    """
    board = request["board"]
    _integer("turn", request["turn"], 0, _MAX_TURN)
    for side in ("width", "height"):
        _integer(side, board[side], MIN_SIDE, MAX_SIDE)
    for kind in ("food", "hazards"):
        _points(kind, board.get(kind) or [])
    for snake in _snakes("snakes", board["snakes"] or []):
        _snake(snake)
    for snake in _snakes("eliminated", (request.get("procsnake") or {}).get("eliminated", [])):
        _snake(snake)


def _snakes(name: str, snakes: Any) -> list[Any]:
    if not isinstance(snakes, list) or len(snakes) > MAX_KNOWN_SNAKES:
        raise ValueError(
            f"{name} is {_short(snakes)}; expected a list of at most {MAX_KNOWN_SNAKES}"
        )
    return snakes


def _snake(snake: Mapping[str, Any]) -> None:
    if not isinstance(snake["id"], str):
        raise ValueError(f"a snake's id is {_short(snake['id'])}; expected a text")
    _points("body", snake["body"])
    if not 1 <= len(snake["body"]) <= _MAX_BODY:
        raise ValueError(f"a body has {len(snake['body'])} points; expected 1 to {_MAX_BODY}")
    _integer("health", snake["health"], -_MAX_HEALTH, _MAX_HEALTH)
    if not isinstance(snake.get("customizations") or {}, dict):
        raise ValueError(f"customizations is {_short(snake['customizations'])}; expected an object")
    _integer("eliminatedOnTurn", snake.get("eliminatedOnTurn") or 0, 0, _MAX_TURN)
    for name in ("eliminatedCause", "eliminatedBy"):
        if not isinstance(snake.get(name) or "", str):
            raise ValueError(f"{name} is {_short(snake[name])}; expected a text")
    if snake.get("eliminatedCause") == CAUSE_NAMES[ABSENT]:
        raise ValueError(
            f"eliminatedCause is {CAUSE_NAMES[ABSENT]!r}, which isn't a cause of death"
        )


def _points(name: str, points: Any) -> None:
    if not isinstance(points, list):
        raise ValueError(f"{name} is {_short(points)}; expected a list of points")
    for point in points:
        for axis in ("x", "y"):
            # A head that has left the board lies beside it.
            _integer(f"{name}: {axis}", point[axis], -MAX_SIDE, 2 * MAX_SIDE)


def _integer(name: str, value: Any, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} is {_short(value)}; expected an integer from {low} to {high}")


def _short(value: Any) -> str:
    return repr(value)[:40]
