"""Reads the webhook's JSON (API v1) into a state. Requests may be hostile, so they are checked.

Engines differ in what they send. Dead snakes may stay in `board.snakes`
(`envs.battlesnake.plain.living` finds them); hazards may be stacked, or lie above the board (snail
mode); `game.map` may be empty; fields come and go. So only fields that decide a move are
required."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from envs.battlesnake import rng
from envs.battlesnake.plain import Layers, Point, place_hazards, state_from_board
from envs.battlesnake.plain.living import Life, LifeHistory, LifeRules, Sighting, lives_in
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import FULL_HEALTH, MAX_SIDE, MAX_SNAKES, MIN_SIDE, State
from envs.battlesnake.webhook.fields import (
    MAX_TEXT,
    MOST_SIDE,
    WebhookError,
    integer,
    is_on_board,
    log_once,
    mapping,
    points,
    text,
)
from envs.battlesnake.webhook.hazards import read_hazards
from envs.battlesnake.webhook.rules import integer_as_played, read_settings
from envs.battlesnake.webhook.writing import DEFAULT_TIMEOUT_MS
from envs.common.errors import InvalidStateError

MAX_TURN = 1 << 30
MAX_LISTED_SNAKES = 4 * MAX_SNAKES
_MAX_TIMEOUT = 1 << 31


class ListedSnake(TypedDict):
    """A snake of a request's list. It may be dead: requests needn't say so."""

    id: str
    name: str
    health: int
    body: list[Point]
    latency: Any
    shout: Any


class UnheldBoardError(WebhookError):
    """A valid request is about a board that the engine can't hold: sides outside 3..25, or more
    than 16 living snakes.

    The error carries what `envs.battlesnake.plain.safety` needs to answer nevertheless: `board`
    (a plain dict, without hazards), `hazards` (layers by point), `you` (our place in the list of
    snakes) and `settings` (the rules)."""

    def __init__(
        self,
        message: str,
        *,
        board: Mapping[str, Any],
        hazards: Layers,
        you: int,
        settings: Settings,
    ) -> None:
        super().__init__(message)
        self.board = board
        self.hazards = hazards
        self.you = you
        self.settings = settings


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

    `history` holds the earlier requests of the same game and the same `you`; this one is added to
    it. Without it a snake that may be dead is listed in `Turn.undecided` and counts as living.

    Raises `WebhookError`, which names the first field that is wrong, and `UnheldBoardError` for a
    board that an official game can have but the engine can't hold. A setting never raises: a value
    that `Settings` doesn't allow becomes the nearest allowed one, which is logged once."""
    body = mapping(data, "body")
    board = mapping(body.get("board"), "board")
    you = mapping(body.get("you"), "you")
    width, height = _sides(board)
    own = _read_snake(you, "you", width, height)
    snakes = _read_snakes(board, width, height, own)
    place = snakes.index(own)
    sighting = _sighting(body, snakes, width, height, you=place)
    if not sighting.is_on_board(place):
        raise WebhookError("you is dead or off the board; only living snakes are asked for a move")
    return _turn(body, snakes, _lives(sighting, history), place)


def read_end_request(data: Any, *, history: LifeHistory | None = None) -> Turn | None:
    """Read the body of `/end`, where `you` may be dead. The turn is then that of the first living
    snake; None if none lives.

    `history` and what is raised are as in `read_move_request`.
    """
    body = mapping(data, "body")
    board = mapping(body.get("board"), "board")
    width, height = _sides(board)
    snakes = _read_snakes(board, width, height)
    lives = _lives(_sighting(body, snakes, width, height), history)
    for place, life in enumerate(lives):
        if life is not Life.DEAD:
            return _turn(body, snakes, lives, place)
    return None


def _lives(sighting: Sighting, history: LifeHistory | None) -> Sequence[Life]:
    if history is None:
        return lives_in(sighting)
    return history.see(sighting)


def _sides(board: Mapping[str, Any]) -> tuple[int, int]:
    width = integer(board, "board", "width", 1, MOST_SIDE)
    height = integer(board, "board", "height", 1, MOST_SIDE)
    return width, height


def _turn_number(body: Mapping[str, Any]) -> int:
    return integer(body, "body", "turn", 0, MAX_TURN, default=0)


def _sighting(
    body: Mapping[str, Any],
    snakes: Sequence[ListedSnake],
    width: int,
    height: int,
    *,
    you: int | None = None,
) -> Sighting:
    """Return what the request shows of its snakes. At the end of a game nobody is asked for a move,
    so `you` is None.
    """
    return Sighting.of(
        snakes,
        turn=_turn_number(body),
        width=width,
        height=height,
        rules=LifeRules.of(mapping(body.get("game"), "game")),
        you=you,
        is_final=you is None,
    )


def _turn(
    body: Mapping[str, Any], listed: Sequence[ListedSnake], lives: Sequence[Life], place: int
) -> Turn:
    """Return the turn of the snake at `place` of the list, with those that live."""
    game = mapping(body.get("game"), "game")
    board = mapping(body.get("board"), "board")
    width, height = _sides(board)
    living = [snake for snake, life in zip(listed, lives, strict=True) if life is not Life.DEAD]
    you = living.index(listed[place])
    food = points(board, "board", "food", width * height)
    plain = {
        "turn": _turn_number(body),
        "width": width,
        "height": height,
        "snakes": [_as_plain(snake) for snake in living],
        "food": [point for point in food if is_on_board(point, width, height)],
    }
    hazards = read_hazards(board, width, height)
    settings = read_settings(game)
    _require_held(plain, hazards, you, settings)
    try:
        state = state_from_board(plain, settings=settings)
        place_hazards(state, hazards)
    except InvalidStateError as error:
        raise WebhookError(f"board: {error}") from error
    game_id = text(game, "game", "id")
    # JSON can hold half a surrogate pair, which UTF-8 proper can't.
    state.arrays.key[0] = rng.combine(0, zlib.crc32(game_id.encode("utf-8", "surrogatepass")))
    return Turn(
        state=state,
        you=you,
        game_id=game_id,
        timeout_ms=_timeout(game),
        ids=[snake["id"] for snake in living],
        names=[snake["name"] for snake in living],
        undecided=[
            snake["id"] for snake, life in zip(listed, lives, strict=True) if life is Life.UNDECIDED
        ],
    )


def _require_held(board: Mapping[str, Any], hazards: Layers, you: int, settings: Settings) -> None:
    """Raise `UnheldBoardError` for a board that is too large or small, or has too many snakes."""
    width = board["width"]
    height = board["height"]
    num_snakes = len(board["snakes"])
    has_held_sides = min(width, height) >= MIN_SIDE and max(width, height) <= MAX_SIDE
    if has_held_sides and num_snakes <= MAX_SNAKES:
        return
    what = f"is {width}x{height} with {num_snakes} living snakes"
    limits = f"sides of {MIN_SIDE} to {MAX_SIDE} and {MAX_SNAKES} snakes are played"
    log_once("board", f"{what}; {limits}, elsewhere the answer is the safest move")
    raise UnheldBoardError(
        f"board {what}; {limits}", board=board, hazards=hazards, you=you, settings=settings
    )


def _timeout(game: Mapping[str, Any]) -> int:
    """Return the milliseconds that an answer may take. 0 and nonsense stand for the usual time."""
    milliseconds = integer_as_played(
        game, "game", "timeout", 0, lambda value: min(max(value, 0), _MAX_TIMEOUT)
    )
    return milliseconds or DEFAULT_TIMEOUT_MS


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
    board: Mapping[str, Any], width: int, height: int, own: ListedSnake | None = None
) -> list[ListedSnake]:
    """Return the snakes of the list, with `own` in the place of its entry; last if it has none.

    Of entries with one id, which only strangers send, the first counts that isn't plainly dead.
    """
    snakes: dict[str, ListedSnake] = {}
    for n, entry in enumerate(_listed_snakes(board)):
        name = f"board.snakes[{n}]"
        snake = mapping(entry, name)
        snake_id = text(snake, name, "id")
        earlier = snakes.get(snake_id)
        if earlier is not None and not _is_plainly_dead(earlier, width, height):
            continue
        snakes.pop(snake_id, None)
        if own is not None and own["id"] == snake_id:
            snakes[snake_id] = own
        else:
            snakes[snake_id] = _read_snake(snake, name, width, height)
    if own is not None:
        snakes.setdefault(own["id"], own)
    return list(snakes.values())


def _is_plainly_dead(snake: ListedSnake, width: int, height: int) -> bool:
    """Whether the snake has no health, no body, or a part off the board."""
    if not snake["health"] or not snake["body"]:
        return True
    return not all(is_on_board(point, width, height) for point in snake["body"])


def _read_snake(snake: Mapping[str, Any], name: str, width: int, height: int) -> ListedSnake:
    return {
        "body": _read_body(snake, name, width * height + 3),
        "health": integer(snake, name, "health", 0, FULL_HEALTH),
        "id": text(snake, name, "id"),
        "name": _name(snake),
        "latency": snake.get("latency"),
        "shout": snake.get("shout"),
    }


def _as_plain(snake: ListedSnake) -> dict[str, Any]:
    """Return the snake without what tells whether it lives."""
    return {key: snake[key] for key in ("body", "health", "id", "name")}


def _read_body(snake: Mapping[str, Any], name: str, most: int) -> list[Point]:
    """Return the body's points, `most` at most.

    A longer body is that of a maze, where all entries behind the neck lie on one cell; of these as
    many are left out as are too many. Raises `WebhookError` for any other longer body."""
    entries = snake.get("body")
    if isinstance(entries, list) and len(entries) > most:
        body = points(snake, name, "body", len(entries))
        if body[most - 1 :].count(body[-1]) > len(body) - most:
            return body[:most]
    return points(snake, name, "body", most)


def _name(snake: Mapping[str, Any]) -> str:
    """Return the snake's name. No move depends on it, so no request is refused for it."""
    name = snake.get("name")
    if isinstance(name, str):
        return name[:MAX_TEXT]
    return ""
