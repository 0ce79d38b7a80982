"""A board in the webhook's form, as requests, recordings and the rules on plain dicts have it.

To find out who lives, call `is_dead`, `living_snakes` or `dead_snakes`. `Death.of` tells how a
snake died. Only files that read or write JSON spell the keys of a death (`eliminatedCause`, …)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from envs.battlesnake.state import CAUSE_NAMES

UNKNOWN_CAUSE = "unknown"
"""The `eliminatedCause` of a snake that is gone, where a file doesn't tell how it died."""


class Point(TypedDict):
    """A cell of the board. (0, 0) is the lower left corner."""

    x: int
    y: int


class _Appearance(TypedDict, total=False):
    """What requests and recordings say of a snake besides, and no rule asks for."""

    name: str
    latency: str
    """The milliseconds of its last answer, as text."""
    shout: str
    customizations: dict[str, str]


class _Fate(TypedDict):
    """How a snake died. A living snake has "", "" and 0."""

    eliminatedCause: str
    """The official engine's name of the cause of death ("wall-collision"), "" while it lives."""
    eliminatedBy: str
    """The id of the snake that is blamed, "" if there is none."""
    eliminatedOnTurn: int
    """The turn of the first board on which it is dead, 0 while it lives."""


class Snake(_Appearance, _Fate):
    """A snake on a board."""

    id: str
    health: int
    body: list[Point]
    """The points of the body, head first. A point is repeated where entries are stacked."""


class Board(TypedDict):
    """One turn of a game. The dead stay in the list, so the order of the snakes never changes."""

    turn: int
    width: int
    height: int
    food: list[Point]
    """Repeats count: two equal points are two pieces of food."""
    hazards: list[Point]
    """Repeats are layers. Points above the board are snail_mode's memory of where tails were."""
    snakes: list[Snake]


@dataclass(frozen=True)
class Death:
    """How a snake died."""

    cause: str
    """The official engine's name of the cause ("wall-collision"), or `UNKNOWN_CAUSE`."""
    killer: str = ""
    """The id of the snake that is blamed, "" if there is none."""
    turn: int = 0
    """The turn of the first board on which the snake is dead, 0 if it isn't known."""

    @classmethod
    def of(cls, snake: Mapping[str, Any]) -> Death | None:
        """Return how a snake in the webhook's form died; None if it isn't marked as dead."""
        if not is_dead(snake):
            return None
        return cls(
            cause=snake["eliminatedCause"],
            killer=snake.get("eliminatedBy") or "",
            turn=snake.get("eliminatedOnTurn") or 0,
        )

    def fields(self) -> _Fate:
        """Return the death as fields of a `Snake`."""
        return {
            "eliminatedCause": self.cause,
            "eliminatedBy": self.killer,
            "eliminatedOnTurn": self.turn,
        }


_ALIVE: _Fate = {"eliminatedCause": "", "eliminatedBy": "", "eliminatedOnTurn": 0}


def plain_snake(
    snake_id: str, *, health: int, body: list[Point], death: Death | None = None
) -> Snake:
    """Return a snake of a board."""
    fate = _ALIVE if death is None else death.fields()
    return {
        "id": snake_id,
        "health": health,
        "body": body,
        "eliminatedCause": fate["eliminatedCause"],
        "eliminatedBy": fate["eliminatedBy"],
        "eliminatedOnTurn": fate["eliminatedOnTurn"],
    }


def is_dead(snake: Mapping[str, Any]) -> bool:
    """Whether a snake in the webhook's form is marked as dead. Requests need not mark the dead."""
    return bool(snake.get("eliminatedCause"))


def living_snakes(board: Mapping[str, Any]) -> list[Snake]:
    """Return the snakes of a board that live, in their order."""
    return [snake for snake in board["snakes"] if not is_dead(snake)]


def dead_snakes(board: Mapping[str, Any]) -> list[Snake]:
    """Return the snakes of a board that are dead, in their order."""
    return [snake for snake in board["snakes"] if is_dead(snake)]


def has_known_fate(snake: Mapping[str, Any]) -> bool:
    """Whether the snake lives, or is dead of a cause that the rules know."""
    return snake.get("eliminatedCause", "") in CAUSE_NAMES


def as_living(snake: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's snake with the three fields of its death. Fields that the request has
    stay; null fields are left out.
    """
    fields = {name: value for name, value in snake.items() if value is not None}
    return {**_ALIVE, **fields}


def as_dead(snake: Mapping[str, Any], death: Death) -> dict[str, Any]:
    """Return the snake marked as dead."""
    return {**snake, **death.fields()}


def end_of(snake: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snake's id and the three fields of its death."""
    return {"id": snake["id"], **{key: snake[key] for key in _ALIVE}}
