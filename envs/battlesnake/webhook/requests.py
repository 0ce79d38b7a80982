"""Turns the webhook's JSON (API v1) into a state, and a state into JSON. Requests may be hostile,
so they are checked here.

Engines differ in what they send. Dead snakes may stay in `board.snakes` (`envs.battlesnake.plain.living`
finds them); hazards may be stacked, or lie above the board (snail mode); `game.map` may be empty;
fields come and go. So only fields that decide a move are required."""

from __future__ import annotations

import logging
import reprlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter, length_hint
from typing import Any

from envs.battlesnake import rng
from envs.battlesnake.plain.boards import board_from_state, place_hazards, state_from_board
from envs.battlesnake.plain.living import Life, LifeHistory, LifeRules, Sighting, lives_in
from envs.battlesnake.settings import MAP_IDS, RULESETS, Settings, within_limits
from envs.battlesnake.state import (
    ALIVE,
    FULL_HEALTH,
    MAX_LAYERS,
    MAX_SIDE,
    MAX_SNAKES,
    MIN_SIDE,
    State,
)
from envs.battlesnake.webhook.flat_rules import game_in_webhook_form, integer_of
from envs.common.errors import InvalidStateError, ProcsnakeError

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_MS = 500
MOST_SIDE = 1 << 16
NO_LOOK = {"color": "#888888", "head": "default", "tail": "default"}
"""The `customizations` of a snake that chose none."""
MAX_TEXT = 256
MAX_TURN = 1 << 30
MAX_LISTED_SNAKES = 4 * MAX_SNAKES
_MAX_TIMEOUT = 1 << 31

_POINT = itemgetter("x", "y")

_told: set[str] = set()


class WebhookError(ProcsnakeError):
    """A request body isn't a move request. The message names the field."""


class UnheldBoardError(WebhookError):
    """A valid request is about a board that the engine can't hold: sides outside 3..25, or more
    than 16 living snakes.

    The error carries what `envs.battlesnake.plain.safety` needs to answer nevertheless: `board`
    (the plain dict of `envs.battlesnake.plain.boards`, without hazards), `hazards` (layers by point),
    `you` (our place in the list of snakes) and `settings` (the rules)."""

    def __init__(
        self,
        message: str,
        *,
        board: dict[str, Any],
        hazards: Mapping[tuple[int, int], int],
        you: int,
        settings: Settings,
    ) -> None:
        super().__init__(message)
        self.board = board
        self.hazards = hazards
        self.you = you
        self.settings = settings


class StackedHazards(list[Any]):
    """`board.hazards` with each entry once: `layers[n]` tells how often entry n was in the
    request.
    """

    def __init__(self, entries: Sequence[Any], layers: Sequence[int]) -> None:
        super().__init__(entries)
        self.layers = layers


@dataclass(frozen=True)
class Turn:
    """A request that was read: a state of one board, in which slot `you` is ours."""

    state: State
    you: int
    game_id: str
    timeout_ms: int
    ids: list[str]
    """Snake ids by slot."""
    names: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    """Ids of the snakes in `ids` that may be dead: this request doesn't say, and no earlier one was
    at hand.
    """

    @property
    def number(self) -> int:
        """The turn number of the board."""
        return int(self.state.arrays.turn[0])


def read_move_request(data: Any, *, history: LifeHistory | None = None) -> Turn:
    """Read the body of `/start` or `/move`. The state holds the living snakes, as
    `envs.battlesnake.plain.living` finds them.

    `history` is what earlier requests of the same game and the same `you` have shown; this one is
    added to it. Without it a snake that may be dead is listed in `Turn.undecided` and counts as
    living.

    Raises `WebhookError`, which names the first field that is wrong, and `UnheldBoardError` for a
    board that an official game can have but the engine can't hold. A setting never raises: a value
    that `Settings` doesn't take is read as the nearest that it takes, and logged once."""
    body = _mapping(data, "body")
    board, you = (_mapping(body.get(key), key) for key in ("board", "you"))
    width, height = _sides(board)
    own = _read_snake(you, "you", width, height)
    snakes = _read_snakes(board, width, height, own)
    place = snakes.index(own)
    sighting = _sighting(body, snakes, width, height, you=place)
    if not sighting.is_on_board(place):
        raise WebhookError("you is dead or off the board; only living snakes are asked for a move")
    lives = lives_in(sighting) if history is None else history.see(sighting)
    return _turn(body, snakes, lives, place)


def read_end_request(data: Any, *, history: LifeHistory | None = None) -> Turn | None:
    """Read the body of `/end`, where `you` may be dead. The turn is then that of the first living
    snake; None if none lives.

    `history` and what is raised are as in `read_move_request`.
    """
    body = _mapping(data, "body")
    board = _mapping(body.get("board"), "board")
    width, height = _sides(board)
    snakes = _read_snakes(board, width, height)
    sighting = _sighting(body, snakes, width, height)
    lives = lives_in(sighting) if history is None else history.see(sighting)
    if set(lives) <= {Life.DEAD}:
        return None
    return _turn(
        body,
        snakes,
        lives,
        next(place for place, life in enumerate(lives) if life is not Life.DEAD),
    )


def _sides(board: Mapping[str, Any]) -> tuple[int, int]:
    return _integer(board, "board", "width", 1, MOST_SIDE), _integer(
        board, "board", "height", 1, MOST_SIDE
    )


def _sighting(
    body: Mapping[str, Any],
    snakes: Sequence[Mapping[str, Any]],
    width: int,
    height: int,
    *,
    you: int | None = None,
) -> Sighting:
    """At the end of a game nobody is asked, so `you` is None."""
    turn = _integer(body, "body", "turn", 0, MAX_TURN, default=0)
    rules = LifeRules.of(_mapping(body.get("game"), "game"))
    return Sighting.of(
        snakes, turn=turn, width=width, height=height, rules=rules, you=you, is_final=you is None
    )


def _turn(
    body: Mapping[str, Any], listed: Sequence[dict[str, Any]], lives: Sequence[Life], place: int
) -> Turn:
    """The turn of the snake at `place` of the list, with those that live."""
    game, board = (_mapping(body.get(key), key) for key in ("game", "board"))
    width, height = _sides(board)
    snakes = [
        _as_plain(snake) for snake, life in zip(listed, lives, strict=True) if life is not Life.DEAD
    ]
    you = sum(life is not Life.DEAD for life in lives[:place])
    plain = {
        "turn": _integer(body, "body", "turn", 0, MAX_TURN, default=0),
        "width": width,
        "height": height,
        "snakes": snakes,
        "food": [
            p
            for p in _points(board, "board", "food", width * height)
            if _on_board(p, width, height)
        ],
    }
    hazards = _read_hazards(board, width, height)
    settings = read_settings(game)
    if (
        not MIN_SIDE <= width <= MAX_SIDE
        or not MIN_SIDE <= height <= MAX_SIDE
        or len(snakes) > MAX_SNAKES
    ):
        what = f"is {width}x{height} with {len(snakes)} living snakes"
        held = f"sides of {MIN_SIDE} to {MAX_SIDE} and {MAX_SNAKES} snakes are played"
        _tell_once("board", f"{what}; {held}, elsewhere the answer is the safest move")
        raise UnheldBoardError(
            f"board {what}; {held}", board=plain, hazards=hazards, you=you, settings=settings
        )
    try:
        state = state_from_board(plain, settings=settings)
        place_hazards(state, hazards)
    except InvalidStateError as error:
        raise WebhookError(f"board: {error}") from error
    game_id = _text(game, "game", "id")
    # JSON can hold half a surrogate pair, which UTF-8 proper can't.
    state.arrays.key[0] = rng.combine(0, zlib.crc32(game_id.encode("utf-8", "surrogatepass")))
    return Turn(
        state=state,
        you=you,
        game_id=game_id,
        timeout_ms=_setting(
            game, "game", "timeout", 0, lambda value: min(max(value, 0), _MAX_TIMEOUT)
        )
        or DEFAULT_TIMEOUT_MS,
        ids=[s["id"] for s in snakes],
        names=[s["name"] for s in snakes],
        undecided=[
            s["id"] for s, life in zip(listed, lives, strict=True) if life is Life.UNDECIDED
        ],
    )


def _listed_snakes(board: Mapping[str, Any]) -> list[Any]:
    listed = board.get("snakes")
    if not isinstance(listed, list):
        raise WebhookError(f"board.snakes is {type(listed).__name__}; expected a list")
    if len(listed) > MAX_LISTED_SNAKES:
        raise WebhookError(
            f"board.snakes has {len(listed)} entries; at most {MAX_SNAKES} snakes can live"
        )
    return listed


def _read_snakes(
    board: Mapping[str, Any], width: int, height: int, own: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The snakes of the list, with `own` in the place of its entry; last if it has none.

    Of entries with one id, which only strangers send, the first counts that isn't plainly dead.
    """
    snakes: dict[str, dict[str, Any]] = {}
    for n, entry in enumerate(_listed_snakes(board)):
        name = f"board.snakes[{n}]"
        snake = _mapping(entry, name)
        snake_id = _text(snake, name, "id")
        earlier = snakes.get(snake_id)
        if earlier is None or _is_plainly_dead(earlier, width, height):
            snakes.pop(snake_id, None)
            is_own = own is not None and own["id"] == snake_id
            if own and is_own:
                snakes[snake_id] = own
            else:
                snakes[snake_id] = _read_snake(snake, name, width, height)
    if own is not None:
        snakes.setdefault(own["id"], own)
    return list(snakes.values())


def _is_plainly_dead(snake: Mapping[str, Any], width: int, height: int) -> bool:
    return (
        not snake["health"]
        or not snake["body"]
        or not all(_on_board(point, width, height) for point in snake["body"])
    )


def _read_snake(snake: Mapping[str, Any], name: str, width: int, height: int) -> dict[str, Any]:
    """The snake as a plain dict, with what tells whether it lives."""
    return {
        "body": _read_body(snake, name, width * height + 3),
        "health": _integer(snake, name, "health", 0, FULL_HEALTH),
        "id": _text(snake, name, "id"),
        "name": _name(snake),
        "latency": snake.get("latency"),
        "shout": snake.get("shout"),
    }


def _as_plain(snake: Mapping[str, Any]) -> dict[str, Any]:
    return {key: snake[key] for key in ("body", "health", "id", "name")}


def _read_body(snake: Mapping[str, Any], name: str, most: int) -> list[dict[str, int]]:
    """The body's points, `most` at most: a longer one is that of a maze, where all entries behind
    the neck lie on one cell.
    """
    entries = snake.get("body")
    if isinstance(entries, list) and len(entries) > most:
        points = _points(snake, name, "body", len(entries))
        if points[most - 1 :].count(points[-1]) > len(points) - most:
            return points[:most]
    return _points(snake, name, "body", most)


def _name(snake: Mapping[str, Any]) -> str:
    """No move depends on it, so none is refused for it."""
    name = snake.get("name")
    return name[:MAX_TEXT] if isinstance(name, str) else ""


def read_settings(game: Mapping[str, Any], *, strict: bool = False) -> Settings:
    """Return the rules in a `game` object. Settings that are missing are as in a standard game.

    Rules may also be the old engine's flat map (`envs.battlesnake.webhook.flat_rules`), and numbers may be
    texts.

    The official program takes any integer. It is read as the nearest that `Settings` takes, which
    plays the same game. A setting that is no integer counts as missing and is logged once, because
    a move must not fail for it; with `strict` it raises `WebhookError`, which names the field."""
    game = game_in_webhook_form(game)
    ruleset = _object(game.get("ruleset"))
    given = _object(ruleset.get("settings"))
    name = ruleset.get("name")
    map_name = game.get("map")
    is_royale = name == "royale"
    where = "game.ruleset.settings"

    def number(parent: Mapping[str, Any], key: str, field_name: str, default: int) -> int:
        return _setting(
            parent, where, key, default, partial(within_limits, field_name), strict=strict
        )

    return Settings(
        ruleset=name if isinstance(name, str) and name in RULESETS else "standard",
        map=map_name if isinstance(map_name, str) and map_name in MAP_IDS else "standard",
        food_spawn_chance=number(given, "foodSpawnChance", "food_spawn_chance", 15),
        minimum_food=number(given, "minimumFood", "minimum_food", 1),
        hazard_damage=number(given, "hazardDamagePerTurn", "hazard_damage", 14),
        # The official royale refuses periods below 1, so that no such game is played.
        shrink_every_n_turns=max(
            int(is_royale),
            number(_object(given.get("royale")), "shrinkEveryNTurns", "shrink_every_n_turns", 25),
        ),
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _setting(
    parent: Mapping[str, Any],
    where: str,
    key: str,
    default: int,
    nearest: Callable[[int], int],
    *,
    strict: bool = False,
) -> int:
    """An integer as it is played; what is another is logged once."""
    value = integer_of(parent.get(key))
    if value is None:
        return default
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if strict and not is_integer:
        raise WebhookError(f"{where}.{key} is {reprlib.repr(value)[:40]}; expected an integer")
    played = nearest(value) if is_integer else default
    if played != value:
        _tell_once(f"{where}.{key}", f"is {reprlib.repr(value)[:40]}; read as {played}")
    return played


def _read_hazards(board: Mapping[str, Any], width: int, height: int) -> dict[tuple[int, int], int]:
    """Layers by point. What lies beyond `most_hazards`, or beyond `MAX_LAYERS` on a point, is left
    out: no game has it.
    """
    entries = board.get("hazards") or []
    if not isinstance(entries, list):
        raise WebhookError(f"board.hazards is {type(entries).__name__}; expected a list")
    left = iter(entries)
    try:
        points = list(map(_POINT, left))
    except (TypeError, KeyError):
        place = len(entries) - length_hint(left) - 1
        raise WebhookError(
            f"board.hazards[{place}] is {reprlib.repr(entries[place])[:40]}; expected integers x"
            " and y"
        ) from None
    try:
        distinct = set(points)
    except TypeError:
        place = next(
            place
            for place, point in enumerate(points)
            if not all(type(number) is int for number in point)
        )
        raise WebhookError(
            f"board.hazards[{place}] is {reprlib.repr(entries[place])[:40]}; expected integers x"
            " and y"
        ) from None
    for x, y in distinct:
        if type(x) is not int or type(y) is not int:
            raise WebhookError(
                f"board.hazards holds a point {reprlib.repr((x, y))[:40]}; expected integers"
            )
    stacks: Iterable[tuple[tuple[int, int], int]]
    if isinstance(entries, StackedHazards):
        stacks = zip(points, entries.layers, strict=True)
    else:
        stacks = Counter(points).items()
    most = room = most_hazards(width, height)
    held: Counter[tuple[int, int]] = Counter()
    for point, layers in stacks:
        held[point] += min(layers, room)
        room -= min(layers, room)
    if not room:
        _tell_once("board.hazards", f"has more than {most - 1} entries; the first {most} are read")
    return {point: min(layers, MAX_LAYERS) for point, layers in held.items()}


def most_hazards(width: int, height: int) -> int:
    """Return the most hazard entries that an official game can show, including those above the
    board.

    Only snail_mode stacks many layers: in each turn a tail leaves one stack as high as its snake is
    long (n at most), and each stack melts by one layer per turn. So at worst the stacks on the
    board are n, n - 1, ... 1 layers high, and the memory above the board adds the lengths of the
    living snakes. Several snakes share the cells that one would have, so their sum of squares is
    smaller."""
    longest = width * height + 3
    return longest * (longest + 1) // 2 + longest


def _tell_once(field_name: str, what: str) -> None:
    """Log what was read in another sense than it was sent, once per field: each turn of a game
    brings it again.
    """
    if field_name not in _told:
        _told.add(field_name)
        log.warning("%s %s (said once)", field_name, what)


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise WebhookError(f"{name} is {type(value).__name__}; expected an object")
    return value


def _integer(
    parent: Mapping[str, Any],
    name: str,
    key: str,
    low: int,
    high: int,
    *,
    default: int | None = None,
) -> int:
    value = parent.get(key, default)
    if value is None and default is not None:
        return default
    if isinstance(value, float):
        value = integer_of(value)  # JSON knows but one kind of number, and 90.0 is 90.
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        shown = reprlib.repr(value)[:40]
        raise WebhookError(f"{name}.{key} is {shown}; expected an integer from {low} to {high}")
    return value


def _text(parent: Mapping[str, Any], name: str, key: str) -> str:
    value = parent.get(key)
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise WebhookError(
            f"{name}.{key} is {reprlib.repr(value)[:40]}; expected a text of at most {MAX_TEXT}"
            " characters"
        )
    return value


def _points(parent: Mapping[str, Any], name: str, key: str, most: int) -> list[dict[str, int]]:
    values = parent.get(key) or []
    if not isinstance(values, list) or len(values) > most:
        raise WebhookError(f"{name}.{key} is no list of at most {most} points")
    with suppress(KeyError, TypeError):
        if set(map(type, chain.from_iterable(pairs := list(map(_POINT, values))))) <= {int}:
            if all(
                -MOST_SIDE <= number <= 2 * MOST_SIDE for number in chain.from_iterable(set(pairs))
            ):
                return [{"x": x, "y": y} for x, y in pairs]
    points = []  # Something is wrong: find out where.
    for n, value in enumerate(values):
        where = f"{name}.{key}[{n}]"
        point = _mapping(value, where)
        points.append(
            {axis: _integer(point, where, axis, -MOST_SIDE, 2 * MOST_SIDE) for axis in ("x", "y")}
        )
    return points


def _on_board(point: Mapping[str, int], width: int, height: int) -> bool:
    return 0 <= point["x"] < width and 0 <= point["y"] < height


def game_object(
    settings: Settings, game_id: str, *, timeout_ms: int = DEFAULT_TIMEOUT_MS, source: str = ""
) -> dict[str, Any]:
    """Return the `game` object of a request, as the official command line sends it."""
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
    """Return the request that snake `you` gets for a board. It lists living snakes by slot, and
    food and hazards by x, then y.

    `ids`, `names`, `latencies` (milliseconds as text) and `customizations` have one entry per slot.
    A dead `you` is shown as it died."""
    plain = board_from_state(state, board, ids)
    looks = customizations or [NO_LOOK] * len(ids)

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
    alive = [
        ids[slot] for slot in range(state.num_snakes) if state.arrays.cause[board, slot] == ALIVE
    ]
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
