"""What all painters share: a board as a dict, a colour for each snake, and the direction in which a
body runs.

Painters take a board in webhook form (`envs.battlesnake.plain`). Its snakes may also have `name`
and `customizations.color`. So the same code draws states, recordings and other people's games."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from envs.battlesnake.plain import Board, Death, Point, Snake, board_from_state
from envs.battlesnake.state import DOWN, LEFT, RIGHT, UP, State

Color = tuple[int, int, int]

# Sixteen colours that stay apart on light and dark ground, the most distinct ones first.
PALETTE: tuple[Color, ...] = (
    (59, 130, 246),
    (249, 115, 22),
    (22, 163, 74),
    (168, 85, 247),
    (236, 72, 153),
    (20, 184, 166),
    (234, 179, 8),
    (120, 83, 65),
    (79, 70, 229),
    (132, 204, 22),
    (190, 24, 93),
    (14, 165, 233),
    (101, 111, 130),
    (244, 114, 182),
    (6, 95, 70),
    (217, 119, 87),
)
FOOD_COLOR: Color = (239, 68, 92)
MAX_NAME = 24

_HEX_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_NO_CHOICE = "#888888"


def scene(
    state: State,
    board: int,
    names: Sequence[str] | None = None,
    customizations: Sequence[Mapping[str, str]] | None = None,
) -> Board:
    """Return board `board` of a state as a dict for the painters.

    `names` has one name per slot (default: snake 1, snake 2, …). `customizations` says for each
    slot how the snake wants to look ("color", "head", "tail"); by default each slot has its own
    colour."""
    if names is None:
        names = [f"snake {slot + 1}" for slot in range(state.num_snakes)]
    if customizations is None:
        customizations = [{"color": to_hex(color)} for color in PALETTE]
    plain = board_from_state(state, board, [str(slot) for slot in range(state.num_snakes)])
    for snake in plain["snakes"]:
        slot = int(snake["id"])
        snake["name"] = names[slot]
        snake["customizations"] = dict(customizations[slot])
    return plain


def display_name(snake: Snake) -> str:
    """Return the snake's name, or else its id, in a form that may be printed."""
    return printable_name(snake.get("name") or snake["id"])


def printable_name(text: Any) -> str:
    """Return a name without control characters, and at most `MAX_NAME` characters of it."""
    name = _printable(text)
    if len(name) <= MAX_NAME:
        return name
    return name[: MAX_NAME - 1] + "…"


def _printable(text: Any) -> str:
    """Return the text without control characters."""
    return "".join(c for c in str(text) if c.isprintable())


def look_in_words(snake: Snake) -> str:
    """Return the names of the head and tail that the snake chose; "" if it chose none. Painters
    draw all snakes alike.
    """
    look = snake.get("customizations") or {}
    parts = []
    for part in ("head", "tail"):
        name = _printable(look.get(part) or "")[:MAX_NAME]
        if name not in ("", "default"):
            parts.append(f"{part} {name}")
    return ", ".join(parts)


def fate(board: Board, snake: Snake) -> str:
    """Return in words how a snake died: the cause, the killer, and the turn. "" if it lives."""
    death = Death.of(snake)
    if death is None:
        return ""
    text = _printable(death.cause)[:MAX_NAME]
    killers = [display_name(other) for other in board["snakes"] if other["id"] == death.killer]
    if killers and death.killer != snake["id"]:
        text += f" by {killers[0]}"
    if death.turn:
        text += f", turn {death.turn}"
    return text


def snake_colors(board: Board) -> list[Color]:
    """Return a colour for each snake: its own choice, or one from the palette if it chose none or
    an earlier snake has the same.
    """
    own_colors: list[Color | None] = []
    for snake in board["snakes"]:
        color = from_hex((snake.get("customizations") or {}).get("color"))
        if color in own_colors:
            color = None
        own_colors.append(color)
    spare = iter([color for color in PALETTE if color not in own_colors] * 2)
    return [color or next(spare, PALETTE[0]) for color in own_colors]


def from_hex(text: Any) -> Color | None:
    """Return (r, g, b) of "#rrggbb".

    Returns None for anything else, and for the grey that the engine gives to those who chose none.
    """
    if not isinstance(text, str) or not _HEX_COLOR.fullmatch(text) or text == _NO_CHOICE:
        return None
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def to_hex(color: Color) -> str:
    """Return a colour as "#rrggbb"."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def blend(color: Color, other: Color, share: float) -> Color:
    """Return a colour between two: `share` 0 gives the first, 1 the second."""
    r, g, b = (round(a + (b - a) * share) for a, b in zip(color, other, strict=True))
    return r, g, b


def direction(board: Board, start: Point, end: Point) -> int | None:
    """Return the move that leads from a point to the next, also across an edge; None if they are
    the same or no neighbours.
    """
    dx = end["x"] - start["x"]
    dy = end["y"] - start["y"]
    if dy == 0:
        if dx in (1, 1 - board["width"]):
            return RIGHT
        if dx in (-1, board["width"] - 1):
            return LEFT
    if dx == 0:
        if dy in (1, 1 - board["height"]):
            return UP
        if dy in (-1, board["height"] - 1):
            return DOWN
    return None


def on_board(board: Board, point: Point) -> bool:
    """Whether a point is a cell of the board. Heads that hit a wall, and some hazards of
    snail_mode, lie off the board.
    """
    return 0 <= point["x"] < board["width"] and 0 <= point["y"] < board["height"]


def hazard_layers(board: Board) -> dict[tuple[int, int], int]:
    """Return the number of hazard layers of each cell that has any."""
    layers: dict[tuple[int, int], int] = {}
    for point in board["hazards"]:
        if on_board(board, point):
            layers[point["x"], point["y"]] = layers.get((point["x"], point["y"]), 0) + 1
    return layers
