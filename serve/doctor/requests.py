"""The requests that engines send: ordinary ones, and odd ones that have broken snakes before."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from envs.battlesnake.plain import setup_board, state_from_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.webhook import game_object, move_request
from serve.doctor import CHECK_PREFIX

Body = dict[str, Any]
Cells = Sequence[tuple[int, int]]

_NAMES = ("you", "b", "c", "d")
_BODIES: Sequence[Cells] = (
    [(5, 1), (5, 2), (5, 3), (4, 3)],
    [(1, 9), (1, 8), (1, 7)],
    [(9, 9), (9, 8), (8, 8), (8, 7), (7, 7)],
    [(8, 4), (8, 3), (9, 3)],
)
_BORDER: Cells = [(0, y) for y in range(11)]
INVALID_BODIES: Mapping[str, bytes] = {
    "no JSON": b"{",
    "empty": b"",
    "a list": b"[]",
    "no game in it": b"{}",
}
"""Bodies that scanners and broken clients send, of a few bytes each."""


def new_game_id() -> str:
    """Return a game id that our own servers recognise as a check."""
    return f"{CHECK_PREFIX}{uuid.uuid4()}"


def ordinary(timeout_ms: int) -> Body:
    """Return a request from the middle of a four-snake game on 11 x 11."""
    return drawn(_BODIES, timeout_ms=timeout_ms, food=[(5, 5), (0, 0)])


def drawn(
    bodies: Sequence[Cells],
    *,
    timeout_ms: int,
    side: int = 11,
    food: Cells = (),
    hazards: Cells = (),
    turn: int = 42,
    game: Settings | None = None,
) -> Body:
    """Return the request that the first of these snakes gets."""
    board = {
        "turn": turn,
        "width": side,
        "height": side,
        "food": _points(food),
        "hazards": _points(hazards),
        "snakes": [
            {"id": name, "health": 80, "body": _points(body)}
            for name, body in zip(_NAMES, bodies, strict=False)
        ],
    }
    return _of_board(board, timeout_ms, game)


def _points(cells: Cells) -> list[dict[str, int]]:
    return [{"x": x, "y": y} for x, y in cells]


def opening(
    side: int, *, timeout_ms: int, num_snakes: int = 4, game: Settings | None = None
) -> Body:
    """Return the first request of a game: turn 0, with all three entries of each body on one
    cell.
    """
    return _of_board(
        setup_board(width=side, height=side, snake_ids=_NAMES[:num_snakes]), timeout_ms, game
    )


def _of_board(board: Mapping[str, Any], timeout_ms: int, game: Settings | None) -> Body:
    settings = game or Settings(solo=len(board["snakes"]) == 1)
    ids = [snake["id"] for snake in board["snakes"]]
    state = state_from_board(board, settings=settings)
    about = game_object(settings, new_game_id(), timeout_ms=timeout_ms)
    request = move_request(state, 0, game=about, ids=ids, names=ids, you=0)
    return {**request, "you": copy.deepcopy(request["you"])}


def one_way_out(timeout_ms: int) -> dict[str, Body]:
    """Return, for each move, a request in which every other move is certain death."""
    corners: dict[str, Cells] = {
        "up": [(0, 0), (1, 0), (2, 0)],
        "down": [(0, 10), (1, 10), (2, 10)],
        "left": [(10, 0), (10, 1), (10, 2)],
        "right": [(0, 0), (0, 1), (0, 2)],
    }
    other = [(5, 5), (5, 6), (5, 7)]
    return {move: drawn([body, other], timeout_ms=timeout_ms) for move, body in corners.items()}


def odd_ones(timeout_ms: int) -> dict[str, Body]:
    """Return odd requests that engines really send, by their oddity. Source: the arena's and the
    official engine's behaviour.
    """
    requests = {
        "the first turn, bodies stacked": opening(11, timeout_ms=timeout_ms),
        "7×7 board": opening(7, timeout_ms=timeout_ms, num_snakes=2),
        "19×19 board": opening(19, timeout_ms=timeout_ms),
        "a game alone": opening(
            11, timeout_ms=timeout_ms, num_snakes=1, game=Settings(ruleset="solo")
        ),
    }
    for ruleset in ("royale", "constrictor", "wrapped"):
        settings = Settings(ruleset=ruleset)
        requests[ruleset] = drawn(_BODIES, timeout_ms=timeout_ms, hazards=_BORDER, game=settings)
    for what, change in _CHANGES.items():
        requests[what] = body = ordinary(timeout_ms)
        change(body)
    return requests


def last_call(timeout_ms: int) -> Body:
    """Return the body of `/end` for a snake that died: no snake is left, and `you` is off the
    board.
    """
    body = ordinary(timeout_ms)
    _die(body["you"])
    body["board"] |= {"snakes": [], "food": []}
    body["turn"] += 1
    return body


def _die(snake: Body) -> None:
    snake["body"] = [{"x": 5, "y": -1}, *snake["body"][:-1]]
    snake |= {"health": 0, "head": snake["body"][0]}


def _with_the_dead(body: Body) -> None:
    _die(body["board"]["snakes"][1])
    body["board"]["snakes"].append(
        {
            **copy.deepcopy(body["board"]["snakes"][2]),
            "id": "gone",
            "health": 0,
            "body": [],
            "length": 0,
        }
    )


def _with_unmarked_corpses(body: Body) -> None:
    """A request as Arena sends it, with a snake that died in our body on an earlier turn."""
    body["game"]["ruleset"]["version"] = "v1.0.0"
    ours, loser = body["board"]["snakes"][:2]
    ours |= {"latency": "41"}
    body["you"] = copy.deepcopy(ours)
    loser |= {
        "body": [ours["body"][1], {"x": 6, "y": 2}, {"x": 7, "y": 2}],
        "length": 3,
        "latency": "0",
    }
    loser["head"] = loser["body"][0]


def _with_unknown_fields(body: Body) -> None:
    for part in (
        body,
        body["game"],
        body["game"]["ruleset"],
        body["board"],
        body["you"],
        *body["board"]["snakes"],
    ):
        part["addedLater"] = {"by": ["an", "engine", None, 1.5]}


def _without_optional_fields(body: Body) -> None:
    for snake in (body["you"], *body["board"]["snakes"]):
        for key in ("shout", "squad", "customizations", "latency"):
            del snake[key]
    for key in ("map", "source"):
        del body["game"][key]
    del body["game"]["ruleset"]["settings"], body["board"]["hazards"]


def _with_snail_hazards(body: Body) -> None:
    body["game"]["map"] = "snail_mode"
    body["board"]["hazards"] = [{"x": 3, "y": 3}] * 4 + [{"x": 3, "y": 14}, {"x": 7, "y": 21}]


def _with_hostile_names(body: Body) -> None:
    for snake in body["board"]["snakes"][1:]:
        snake |= {
            "name": "<img src=x onerror=alert(1)> 🐍\u202e",
            "shout": "'; DROP TABLE games; --" * 8,
        }


def _with_no_map(body: Body) -> None:
    body["game"]["map"] = ""


def _without_you_in_the_list(body: Body) -> None:
    del body["board"]["snakes"][0]


_CHANGES = {
    "dead snakes in the list": _with_the_dead,
    "eliminated snakes without a mark": _with_unmarked_corpses,
    "unknown fields": _with_unknown_fields,
    "optional fields left out": _without_optional_fields,
    "stacked hazards, and some off the board": _with_snail_hazards,
    "hostile names": _with_hostile_names,
    "an empty game.map": _with_no_map,
    "you not in the list": _without_you_in_the_list,
}
