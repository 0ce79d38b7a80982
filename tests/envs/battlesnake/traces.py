"""Games of the official engine: expands `tests/data/official-games.jsonl.gz` into boards in webhook
form.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parents[2] / "data"


class Transition(NamedTuple):
    """One recorded turn: the board before, the moves, what the ruleset's step said and made, and
    the map's result.
    """

    turn: int
    before: dict[str, Any]
    moves: list[str | None]
    over: bool
    stepped: dict[str, Any]
    after: dict[str, Any]


@cache
def games() -> tuple[dict[str, Any], ...]:
    """All recorded games, as they stand in the file. Don't change them: they are read once for all
    tests of a process.
    """
    with gzip.open(DATA / "official-games.jsonl.gz", "rt") as lines:
        return tuple(map(json.loads, lines))


def start_boards(game: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """(board as the map set it up or None, board that the first moves answer)."""
    empty = {"turn": game["start_turn"], "width": game["width"], "height": game["height"]}
    empty |= {"snakes": [], "food": [], "hazards": []}
    if game["kind"] == "map":
        laid_out = _apply(empty, game["setup"])
        return laid_out, _apply(laid_out, game.get("start"))
    return None, _apply(empty, game["start"])


def transitions(game: dict[str, Any]) -> Iterator[Transition]:
    """The game's turns in order."""
    _, board = start_boards(game)
    for turn in game["turns"]:
        stepped = _apply(board, turn.get("exec"))
        after = _apply(stepped, turn.get("post")) | {"turn": board["turn"] + 1}
        yield Transition(
            turn["turn"], board, turn["moves"], turn.get("over", False), stepped, after
        )
        board = after


def _apply(board: dict[str, Any], change: dict[str, Any] | None) -> dict[str, Any]:
    change = dict(change or {})
    for key in ("food", "hazards"):
        if key in change:
            change[key] = _points(change[key])
    if "snakes" in change:
        old = board["snakes"] or [None] * len(change["snakes"])
        change["snakes"] = [
            kept if new is None else _snake(i, new)
            for i, (kept, new) in enumerate(zip(old, change["snakes"], strict=True))
        ]
    return board | change


def _snake(index: int, fields: list[Any]) -> dict[str, Any]:
    health, cause, by, on, body = fields
    return {
        "id": f"s{index}",
        "health": health,
        "body": _points(body),
        "eliminatedCause": cause,
        "eliminatedBy": by,
        "eliminatedOnTurn": on,
    }


def _points(flat: list[int]) -> list[dict[str, int]]:
    return [{"x": x, "y": y} for x, y in zip(flat[::2], flat[1::2], strict=True)]
