"""From a plain board to a `State` of one board, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from envs.battlesnake.plain.board import Board, Death, Point, Snake, as_dead, plain_snake
from envs.battlesnake.plain.living import Life, Sighting, death_of, lives_in
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import ABSENT, ALIVE, CAUSE_NAMES, MAX_LAYERS, NOBODY, State
from envs.common.errors import InvalidStateError

Layers = Mapping[tuple[int, int], int]
"""The number of hazard layers on each point (x, y) that has any."""

_SPARE_ENTRIES = 4
"""Room that a body's ring has beyond what the food on the board lets it grow."""
_SOME_TURN = 2
"""Stands for the turn of a board that doesn't tell it, if its snakes have moved."""
_MAX_FOOD = 255
_MOST_ENTRIES = np.iinfo(np.int16).max


def state_from_board(
    board: Mapping[str, Any], *, settings: Settings | None = None, num_snakes: int | None = None
) -> State:
    """Make a state of one board from a dict. Snake i of the list plays in slot i.

    Snakes in the form of a request (with a `latency`, without an `eliminatedCause`) may be dead,
    because Arena leaves the dead in. Those that this board alone shows to be dead
    (`envs.battlesnake.plain.living`) are placed as dead, of their likely cause. `read_move_request`
    reads a whole request, and so finds nearly all.

    Hazards above the board are snail_mode's memory; other hazards off the board are dropped.
    `num_snakes` asks for more slots than there are snakes. Raises `InvalidStateError`, naming the
    field, for a board that no game can have, and for food off the board."""
    try:
        state = _empty_state(board, settings, num_snakes)
        snakes = board["snakes"]
        ids = [snake["id"] for snake in snakes]
        for slot, snake in enumerate(_with_deaths(board, snakes)):
            _place_snake(state, slot, snake, ids)
        _place_food(state, board.get("food", ()))
        place_hazards(state, Counter(_xy(point) for point in board.get("hazards", ())))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, IndexError) as error:
        raise InvalidStateError(
            f"the board is malformed: {type(error).__name__} {error}"
        ) from error
    return state


def _empty_state(
    board: Mapping[str, Any], settings: Settings | None, num_snakes: int | None
) -> State:
    """Return a state of the board's size and turn, with room for its snakes."""
    width = int(board["width"])
    height = int(board["height"])
    snakes = board["snakes"]
    longest_body = max((len(snake["body"]) for snake in snakes), default=1)
    entries = longest_body + len(board.get("food", ())) + _SPARE_ENTRIES
    if entries > _MOST_ENTRIES:
        raise InvalidStateError(
            f"the longest body and the food have {entries} entries; at most {_MOST_ENTRIES} are"
            " counted"
        )
    if num_snakes is None:
        num_snakes = len(snakes)
    state = State(
        1,
        width=width,
        height=height,
        num_snakes=max(1, num_snakes),
        settings=settings,
        max_length=max(entries, width * height + 3),
    )
    state.arrays.turn[0] = int(board.get("turn", 0))
    return state


def _with_deaths(
    board: Mapping[str, Any], snakes: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return the snakes, with those marked as dead that are so though the board doesn't say it."""
    if not all("latency" in snake and "eliminatedCause" not in snake for snake in snakes):
        return snakes
    sighting = Sighting.of(
        snakes,
        turn=_turn_of(board, snakes),
        width=int(board["width"]),
        height=int(board["height"]),
    )
    marked = []
    for snake, sighted, life in zip(snakes, sighting.snakes, lives_in(sighting), strict=True):
        if life is Life.DEAD:
            snake = as_dead(snake, Death(death_of(sighted, sighting)))
        marked.append(snake)
    return marked


def _turn_of(board: Mapping[str, Any], snakes: Sequence[Mapping[str, Any]]) -> int:
    """Return the board's turn. The board of a request doesn't tell it, but shows whether anybody
    has moved.
    """
    if "turn" in board:
        return int(board["turn"])
    has_moved = any(snake["body"][0] != snake["body"][-1] for snake in snakes if snake["body"])
    if has_moved:
        return _SOME_TURN
    return 0


def _place_snake(state: State, slot: int, snake: Mapping[str, Any], ids: list[str]) -> None:
    a = state.arrays
    cause_name = snake.get("eliminatedCause", "")
    if cause_name not in CAUSE_NAMES[:ABSENT]:
        raise InvalidStateError(
            f"snakes[{slot}].eliminatedCause is {cause_name!r}; known:"
            f" {', '.join(CAUSE_NAMES[1:ABSENT])}"
        )
    cause = CAUSE_NAMES.index(cause_name)
    body = [_xy(point) for point in snake["body"]]
    state.place_snake(0, slot, body, health=int(snake["health"]), cause=cause)
    a.death_turn[0, slot] = int(snake.get("eliminatedOnTurn", 0))
    killer_id = snake.get("eliminatedBy", "")
    if killer_id in ids:
        a.killer[0, slot] = ids.index(killer_id)


def _place_food(state: State, points: Iterable[Mapping[str, int]]) -> None:
    a = state.arrays
    for (x, y), count in Counter(_xy(point) for point in points).items():
        if not _is_on_board(state, x, y):
            raise InvalidStateError(
                f"food lies at ({x}, {y}), off the {state.width}x{state.height} board"
            )
        if count > _MAX_FOOD:
            raise InvalidStateError(
                f"food at ({x}, {y}) is repeated {count} times; at most {_MAX_FOOD} fit on a cell"
            )
        a.food[0, state.cell(x, y)] = count
        a.num_food[0] += count


def place_hazards(state: State, layers: Layers) -> None:
    """Put hazard layers on the board of a state of one board, which must have none yet.

    A point above the board (y in height..2 * height - 1) is snail_mode's memory of a tail; as many
    of these are kept as there are slots. Other points off the board are dropped. Raises
    `InvalidStateError` for more than `MAX_LAYERS` layers on a point."""
    a = state.arrays
    trails: list[tuple[int, int]] = []
    for (x, y), count in layers.items():
        is_above = state.height <= y < 2 * state.height
        y_on_board = y - state.height if is_above else y
        if not _is_on_board(state, x, y_on_board):
            continue
        if count > MAX_LAYERS:
            raise InvalidStateError(
                f"the hazard at ({x}, {y}) has {count} layers; no official game stacks more than"
                f" {MAX_LAYERS} on a cell"
            )
        cell = state.cell(x, y_on_board)
        if is_above:
            trails.append((cell, count))
        else:
            a.hazards[0, cell] = count
            a.num_hazards[0] += count
    for slot, trail in enumerate(trails[: state.num_snakes]):
        a.trail[0, slot] = trail


def hazard_layers(state: State) -> dict[tuple[int, int], int]:
    """Return the hazards of a state's first board, as `place_hazards` takes them.

    Points on the board come first, sorted by x, then y; snail_mode's memory comes last.
    """
    a = state.arrays
    cells = np.flatnonzero(a.hazards[0]).tolist()
    layers = Counter(dict(sorted((state.point(cell), int(a.hazards[0, cell])) for cell in cells)))
    for cell, count in a.trail[0]:
        if count:
            x, y = state.point(cell)
            layers[x, y + state.height] += int(count)
    return layers


def board_from_state(state: State, board: int, ids: Sequence[str]) -> Board:
    """Return the dict of one board of a state. `ids` has the snakes' ids by slot.

    Slots in which nobody plays are left out.
    """
    a = state.arrays
    hazards = state.points(a.hazards[board])
    for cell, layers in a.trail[board]:
        x, y = state.point(cell)
        hazards += [(x, y + state.height)] * int(layers)
    slots = np.flatnonzero(a.cause[board] != ABSENT).tolist()
    return {
        "turn": int(a.turn[board]),
        "width": state.width,
        "height": state.height,
        "food": _points(state.points(a.food[board])),
        "hazards": _points(hazards),
        "snakes": [_snake_from_state(state, board, slot, ids) for slot in slots],
    }


def _snake_from_state(state: State, board: int, slot: int, ids: Sequence[str]) -> Snake:
    a = state.arrays
    cause = int(a.cause[board, slot])
    killer = int(a.killer[board, slot])
    death = None
    if cause != ALIVE:
        death = Death(
            cause=CAUSE_NAMES[cause],
            killer=ids[killer] if killer != NOBODY else "",
            turn=int(a.death_turn[board, slot]),
        )
    return plain_snake(
        ids[slot],
        health=int(a.health[board, slot]),
        body=_points(state.body(board, slot)),
        death=death,
    )


def _is_on_board(state: State, x: int, y: int) -> bool:
    return 0 <= x < state.width and 0 <= y < state.height


def _xy(point: Mapping[str, int]) -> tuple[int, int]:
    return int(point["x"]), int(point["y"])


def _points(pairs: Iterable[tuple[int, int]]) -> list[Point]:
    return [{"x": x, "y": y} for x, y in pairs]
