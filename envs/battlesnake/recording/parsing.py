"""Recognises the forms in which people keep games, and brings them all into one: a game, a request
per turn, and a result.

* A recording: the game, requests, and perhaps the result, one per line.
* A log of a server: the requests to `/move` (`/start` and `/end` may be among them), one per line.
  Every line with a `board` is a request. A line may hold it under a key of its own, as in {"time":
  …, "body": {"game": …, "board": …}}.
* A single request, or a board alone, on any number of lines.
* Frames of Arena or of the engine before it (`arena_frames`): pages, frames, or messages of a
  WebSocket.
* A JSON list of requests or of frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from envs.battlesnake.recording.arena_frames import is_frames
from envs.common.strangers.bounded import parse_json

Entry = dict[str, Any]
_BOARD_KEYS = {"width", "height", "snakes"}
_ANSWERS = {"latency", "shout"}
"""What of a snake may differ between two requests about one board."""


def read_entries(text: str) -> list[Entry]:
    """Return a file's JSON objects: one per line, or those of a single JSON value.

    A last line that a crash cut short is dropped. Raises `ValueError`, which names the first line
    that is not a JSON object."""
    text = text.removeprefix("\ufeff")
    try:
        value = parse_json(text, whole_floats_as_integers=True)
    except ValueError:
        return _read_lines(text.rstrip("\n").split("\n"))
    entries: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("it is JSON, but not an object or a list of objects")
    return entries


def _read_lines(lines: list[str]) -> list[Entry]:
    entries: list[Entry] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() and len(lines) > 1:
            continue
        try:
            entry = parse_json(line, whole_floats_as_integers=True)
        except ValueError as error:
            if number == len(lines) > 1:
                break
            raise ValueError(f"line {number} is not JSON ({error})") from error
        if not isinstance(entry, dict):
            raise ValueError(f"line {number} is not a JSON object")
        entries.append(entry)
    return entries


def is_of_frames(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether these are frames and not requests."""
    return any(_request_in(entry) is None and is_frames(entry) for entry in entries[:2])


def game_requests_result(entries: Sequence[Entry]) -> tuple[Any, list[Entry], Entry | None]:
    """Return the game, the requests by turn, each turn once, and the result, or None if the file
    has none.

    Raises `ValueError` for the requests of several games.
    """
    rest = list(entries)
    result = None
    if len(rest) > 1 and "isDraw" in rest[-1]:
        result = rest.pop()
    if _request_in(rest[0]) is None:
        return rest[0], list(once_per_turn(rest[1:])), result
    requests = [request for entry in rest if (request := _request_in(entry)) is not None]
    _refuse_several_games(requests)
    game: Any = next((request["game"] for request in requests if request.get("game")), {})
    # A server that answers two snakes may log a turn late.
    in_order = sorted(requests, key=_turn)
    return game, list(once_per_turn(in_order)), result


def _request_in(entry: Mapping[str, Any]) -> Entry | None:
    """Return the request that an entry is or holds; None if there is none."""
    if isinstance(entry.get("board"), Mapping):
        return dict(entry)
    if set(entry) >= _BOARD_KEYS:
        return {"turn": entry.get("turn", 0), "board": dict(entry)}
    inner = [
        value
        for value in entry.values()
        if isinstance(value, Mapping) and isinstance(value.get("board"), Mapping)
    ]
    if len(inner) != 1:
        return None
    return dict(inner[0])


def _refuse_several_games(requests: Sequence[Mapping[str, Any]]) -> None:
    ids = {
        str(game.get("id"))
        for request in requests
        if isinstance(game := request.get("game"), Mapping)
    }
    if len(ids) > 1:
        raise ValueError(
            f"it has requests of {len(ids)} games; keep those of one, for example: grep"
            f" {min(ids)} FILE > game.jsonl"
        )
    for before, after in pairwise(map(_turn, requests)):
        # By one turn it goes back where the log of a second snake is late.
        if not ids and after < before - 1:
            raise ValueError(
                f"its turn goes back from {before} to {after}, so it holds several games; keep one"
                " per file"
            )


def _turn(request: Mapping[str, Any]) -> int:
    """Return the turn, to sort by: 0 if it is missing, which whoever reads the request refuses."""
    turn = request.get("turn")
    if isinstance(turn, int):
        return turn
    return 0


def once_per_turn(requests: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the requests without repeated boards. A different board of the same turn stays, and
    will contradict the rules.
    """
    last: Mapping[str, Any] | None = None
    for request in requests:
        view = _common_view(request)
        if view is None or view != last:
            yield request
        last = view


def _common_view(request: Mapping[str, Any]) -> Entry | None:
    """Return what all snakes see alike of a turn, in an order of its own; None if this is no
    request.
    """
    board = request.get("board")
    if not isinstance(board, Mapping):
        return None
    snakes = board.get("snakes")
    if not isinstance(snakes, list) or not all(isinstance(snake, Mapping) for snake in snakes):
        return None
    view: Entry = dict(board)
    for kind in ("food", "hazards"):
        view[kind] = sorted(map(str, board.get(kind) or []))
    view["snakes"] = sorted(map(_without_answer, snakes), key=lambda snake: str(snake.get("id")))
    return {"turn": request.get("turn"), "board": view, "more": request.get("procsnake")}


def _without_answer(snake: Mapping[str, Any]) -> Entry:
    return {key: value for key, value in snake.items() if key not in _ANSWERS}
