"""The webhook's JSON (API v1) to a state and back. What arrives is hostile until it has been read here.

Engines differ in what they send: dead snakes may stay in `board.snakes`, heads of the dead lie off the board, hazards may lie
above it (snail mode) or be stacked, `game.map` may be empty, fields come and go. Only what decides a move is demanded.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envs.battlesnake import rng
from envs.battlesnake.plain import board_from_state, state_from_board
from envs.battlesnake.settings import MAP_IDS, RULESETS, Settings
from envs.battlesnake.state import ALIVE, FULL_HEALTH, MAX_SIDE, MAX_SNAKES, MIN_SIDE, State
from envs.errors import InvalidStateError, ProcsnakeError

DEFAULT_TIMEOUT_MS = 500
_MAX_TEXT, _MAX_TURN, _MAX_LAYERS = 256, 1 << 30, 64


class WebhookError(ProcsnakeError):
    """A request body that is no move request. The message names the field."""


@dataclass(frozen=True)
class Turn:
    """One request, read: a state of one board in which slot `you` is ours."""

    state: State
    you: int
    game_id: str
    timeout_ms: int
    ids: list[str]
    """Snake ids by slot."""
    names: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The turn number of the board."""
        return int(self.state.arrays.turn[0])


def read_move_request(data: Any) -> Turn:
    """Read the body of `/start`, `/move` or `/end`. Raises `WebhookError` naming the first field that can't be."""
    body = _mapping(data, "body")
    game, board, you = (_mapping(body.get(key), key) for key in ("game", "board", "you"))
    width, height = (_integer(board, "board", side, MIN_SIDE, MAX_SIDE) for side in ("width", "height"))
    your_id = _text(you, "you", "id")
    snakes = _read_snakes(board, you, your_id, width, height)
    plain = {
        "turn": _integer(body, "body", "turn", 0, _MAX_TURN, default=0),
        "width": width,
        "height": height,
        "snakes": snakes,
        "food": [p for p in _points(board, "board", "food", width * height) if _on_board(p, width, height)],
        "hazards": _points(board, "board", "hazards", width * height * _MAX_LAYERS),
    }
    try:
        state = state_from_board(plain, settings=read_settings(game))
    except InvalidStateError as error:
        raise WebhookError(f"board: {error}") from error
    game_id = _text(game, "game", "id")
    # JSON can hold half a surrogate pair, which UTF-8 proper can't.
    state.arrays.key[0] = rng.combine(0, zlib.crc32(game_id.encode("utf-8", "surrogatepass")))
    return Turn(
        state=state,
        you=next(i for i, s in enumerate(snakes) if s["id"] == your_id),
        game_id=game_id,
        timeout_ms=_integer(game, "game", "timeout", 0, 1 << 31, default=0) or DEFAULT_TIMEOUT_MS,
        ids=[s["id"] for s in snakes],
        names=[s["name"] for s in snakes],
    )


def _read_snakes(
    board: Mapping[str, Any], you: Mapping[str, Any], your_id: str, width: int, height: int
) -> list[dict[str, Any]]:
    """The living, with `you` taken from `you` alone, in the order of the list; you come last if it leaves you out."""
    listed = board.get("snakes")
    if not isinstance(listed, list):
        raise WebhookError(f"board.snakes is {type(listed).__name__}; expected a list")
    if len(listed) > 4 * MAX_SNAKES:
        raise WebhookError(f"board.snakes has {len(listed)} entries; at most {MAX_SNAKES} snakes can live")
    own = _read_snake(you, "you", width, height)
    if own is None:
        raise WebhookError("you is dead or off the board; only living snakes are asked for a move")
    snakes: list[dict[str, Any]] = []
    for n, entry in enumerate(listed):
        snake = _mapping(entry, f"board.snakes[{n}]")
        is_you = snake.get("id") == your_id
        read = own if is_you else _read_snake(snake, f"board.snakes[{n}]", width, height)
        if read is not None and not (is_you and own in snakes):
            snakes.append(read)
    if own not in snakes:
        snakes.append(own)
    if len(snakes) > MAX_SNAKES:
        raise WebhookError(f"board.snakes has {len(snakes)} living entries; at most {MAX_SNAKES} are played")
    return snakes


def _read_snake(snake: Mapping[str, Any], name: str, width: int, height: int) -> dict[str, Any] | None:
    """The snake as a plain dict, or None if it is dead: without health or body, or with a part off the board."""
    body = _points(snake, name, "body", width * height + 3)
    health = _integer(snake, name, "health", 0, FULL_HEALTH)
    identity = {"id": _text(snake, name, "id"), "name": _text(snake, name, "name", default="")}
    if health == 0 or not body or not all(_on_board(p, width, height) for p in body):
        return None
    return {**identity, "health": health, "body": body}


def read_settings(game: Mapping[str, Any]) -> Settings:
    """The rules in a `game` object; what the engine doesn't say, or what is none, is as in a standard game.

    Raises `WebhookError` naming the field for numbers out of range.
    """
    ruleset = _mapping(game.get("ruleset") or {}, "game.ruleset")
    given = _mapping(ruleset.get("settings") or {}, "game.ruleset.settings")
    royale = _mapping(given.get("royale") or {}, "game.ruleset.settings.royale")
    name, map_name = ruleset.get("name"), game.get("map")
    where = "game.ruleset.settings"
    return Settings(
        ruleset=name if isinstance(name, str) and name in RULESETS else "standard",
        map=map_name if isinstance(map_name, str) and map_name in MAP_IDS else "standard",
        food_spawn_chance=_integer(given, where, "foodSpawnChance", 0, 100, default=15),
        minimum_food=_integer(given, where, "minimumFood", 0, 625, default=1),
        hazard_damage=_integer(given, where, "hazardDamagePerTurn", -1000, 1000, default=14),
        shrink_every_n_turns=max(1, _integer(royale, f"{where}.royale", "shrinkEveryNTurns", 0, 1 << 30, default=25)),
    )


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise WebhookError(f"{name} is {type(value).__name__}; expected an object")
    return value


def _integer(parent: Mapping[str, Any], name: str, key: str, low: int, high: int, *, default: int | None = None) -> int:
    value = parent.get(key, default)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        shown = repr(value)[:40]
        raise WebhookError(f"{name}.{key} is {shown}; expected an integer from {low} to {high}")
    return value


def _text(parent: Mapping[str, Any], name: str, key: str, *, default: str | None = None) -> str:
    value = parent.get(key, default)
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise WebhookError(f"{name}.{key} is {repr(value)[:40]}; expected a text of at most {_MAX_TEXT} characters")
    return value


def _points(parent: Mapping[str, Any], name: str, key: str, most: int) -> list[dict[str, int]]:
    values = parent.get(key) or []
    if not isinstance(values, list) or len(values) > most:
        raise WebhookError(f"{name}.{key} is no list of at most {most} points")
    points = []
    for n, value in enumerate(values):
        where = f"{name}.{key}[{n}]"
        point = _mapping(value, where)
        points.append({axis: _integer(point, where, axis, -MAX_SIDE, 2 * MAX_SIDE) for axis in ("x", "y")})
    return points


def _on_board(point: Mapping[str, int], width: int, height: int) -> bool:
    return 0 <= point["x"] < width and 0 <= point["y"] < height


def game_object(settings: Settings, game_id: str, *, timeout_ms: int = DEFAULT_TIMEOUT_MS, source: str = "") -> dict[str, Any]:
    """The `game` of a request, as the official command line sends it."""
    return {
        "id": game_id,
        "ruleset": {
            "name": settings.ruleset,
            "version": "cli",
            "settings": {
                "foodSpawnChance": settings.food_spawn_chance,
                "minimumFood": settings.minimum_food,
                "hazardDamagePerTurn": settings.hazard_damage,
                "hazardMap": "",
                "hazardMapAuthor": "",
                "royale": {"shrinkEveryNTurns": settings.shrink_every_n_turns},
                "squad": {
                    "allowBodyCollisions": False,
                    "sharedElimination": False,
                    "sharedHealth": False,
                    "sharedLength": False,
                },
            },
        },
        "map": settings.map,
        "timeout": timeout_ms,
        "source": source,
    }


def move_request(
    state: State,
    board: int,
    *,
    game: Mapping[str, Any],
    ids: Sequence[str],
    names: Sequence[str],
    you: int,
    latencies: Sequence[str] | None = None,
    customizations: Sequence[Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """The request that snake `you` gets for a board: the living in slot order, food and hazards sorted by x then y.

    `ids`, `names`, `latencies` (milliseconds as text) and `customizations` go by slot. A dead `you` is shown as it died.
    """
    plain = board_from_state(state, board, ids)
    looks = customizations or [{"color": "#888888", "head": "default", "tail": "default"}] * len(ids)

    def snake_object(snake: Mapping[str, Any]) -> dict[str, Any]:
        slot = ids.index(snake["id"])
        return {
            "id": snake["id"],
            "name": names[slot],
            "latency": latencies[slot] if latencies else "0",
            "health": snake["health"],
            "body": snake["body"],
            "head": snake["body"][0],
            "length": len(snake["body"]),
            "shout": "",
            "squad": "",
            "customizations": dict(looks[slot]),
        }

    by_id = {snake["id"]: snake_object(snake) for snake in plain["snakes"]}
    alive = [ids[slot] for slot in range(state.num_snakes) if state.arrays.cause[board, slot] == ALIVE]
    return {
        "game": dict(game),
        "turn": plain["turn"],
        "board": {
            "height": state.height,
            "width": state.width,
            "snakes": [by_id[snake_id] for snake_id in alive],
            "food": plain["food"],
            "hazards": plain["hazards"],
        },
        "you": by_id[ids[you]],
    }
