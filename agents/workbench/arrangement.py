"""Changes a board point by point, and reads a board from a game's JSON."""

from __future__ import annotations

from collections.abc import Mapping

from envs.battlesnake.plain import Board, Point, Snake, living_snakes, state_from_board
from envs.battlesnake.plain.board import plain_snake
from envs.battlesnake.recording import Recording, RecordingError
from envs.battlesnake.settings import Settings
from envs.common.errors import InvalidStateError, UnknownNameError
from envs.common.strangers.bounded import parse_json

TOOLS = ("food", "hazard", "snake", "erase")
_HEALTHY = 100
_MAX_CHARACTERS = 1 << 20


def empty_board(width: int, height: int) -> Board:
    """Return a board of turn 0 with nothing on it."""
    return {"turn": 0, "width": width, "height": height, "food": [], "hazards": [], "snakes": []}


def changed(board: Board, x: int, y: int, tool: str, snake: str = "") -> Board:
    """Return `board` after `tool` (one of `TOOLS`) was used at (x, y); (0, 0) is at the bottom
    left.

    * "food" and "hazard" put one there, or remove the one that is there.
    * "snake" puts the head of `snake` there, or adds the point to its tail if the snake is on the
      board already. So click along the body, head first.
    * "erase" removes all that is there; a snake is removed whole.

    Raises `InvalidStateError` for a point off the board, or if the body would have a gap.
    """
    if tool not in TOOLS:
        raise UnknownNameError("tool", tool, TOOLS)
    if not (0 <= x < board["width"] and 0 <= y < board["height"]):
        raise InvalidStateError(
            f"({x}, {y}) is off the board, which is {board['width']}x{board['height']}"
        )
    point: Point = {"x": x, "y": y}
    if tool == "snake":
        return {**board, "snakes": _lengthened(board, point, snake)}
    if tool == "erase":
        return {
            **board,
            "snakes": [snake for snake in board["snakes"] if point not in snake["body"]],
            "food": _without(board["food"], point),
            "hazards": _without(board["hazards"], point),
        }
    if tool == "food":
        return {**board, "food": _toggled(board["food"], point)}
    return {**board, "hazards": _toggled(board["hazards"], point)}


def _without(points: list[Point], point: Point) -> list[Point]:
    return [other for other in points if other != point]


def _toggled(points: list[Point], point: Point) -> list[Point]:
    if point in points:
        return _without(points, point)
    return [*points, point]


def _lengthened(board: Board, point: Point, name: str) -> list[Snake]:
    """Return the snakes of the board, of which one has the point as its new tail, or begins with
    it.
    """
    snakes = {snake["id"]: snake for snake in board["snakes"]}
    if name not in snakes:
        new = plain_snake(name, health=_HEALTHY, body=[point])
        return [*board["snakes"], {**new, "name": name}]
    body = snakes[name]["body"]
    tail = body[-1]
    if abs(tail["x"] - point["x"]) + abs(tail["y"] - point["y"]) > 1:
        raise InvalidStateError(
            f"the tail of {name!r} is at ({tail['x']}, {tail['y']}), so its body can't continue"
            f" at ({point['x']}, {point['y']}); click a neighbour, or erase the snake and start"
            " with its head"
        )
    snakes[name] = {**snakes[name], "body": [*body, point]}
    return list(snakes.values())


def read_position(text: str) -> tuple[Board, Settings]:
    """Read the board and the rules from a JSON text: a move request as engines send it, or a board
    alone (standard rules).

    Dead snakes are left out. Raises `RecordingError` if it is neither, and `InvalidStateError` for
    a board that no game can have."""
    try:
        if len(text) > _MAX_CHARACTERS:
            raise ValueError(f"it has {len(text)} characters, more than {_MAX_CHARACTERS}")
        data = parse_json(text)
    except ValueError as error:
        raise RecordingError(
            f"this is not JSON ({error}); paste a move request, or its board"
        ) from error
    if not isinstance(data, Mapping):
        raise RecordingError(
            f"this is a JSON {type(data).__name__}; paste a move request, or its board"
        )
    if "board" in data:
        request = data
    else:
        request = {"turn": data.get("turn", 0), "board": data}
    recording = Recording(request.get("game", {}), [dict(request)])
    return position(recording, recording.turns[0])


def position(recording: Recording, turn: int) -> tuple[Board, Settings]:
    """Return the board of a recorded turn, with its living snakes, and the game's rules."""
    board = recording.board(turn)
    named: list[Snake] = [
        {**snake, "name": snake.get("name") or snake["id"]} for snake in living_snakes(board)
    ]
    board = {**board, "snakes": named}
    state_from_board(board, settings=recording.settings)
    return board, recording.settings
