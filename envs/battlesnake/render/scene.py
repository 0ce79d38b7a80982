"""What all painters share: a board as a dict, a colour for each snake, and the direction in which a
body runs.

Painters take a board in webhook form (`envs.battlesnake.plain`). Its snakes may also have `name`
and `customizations.color`. So the same code draws states, recordings and other people's games."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from envs.battlesnake.plain import Board, board_from_state
from envs.battlesnake.state import DOWN, LEFT, RIGHT, UP, State

Color = tuple[int, int, int]

# Sixteen colours that stay apart on light and dark ground, the most distinct ones first.
PALETTE: tuple[Color, ...] = (
    (59, 130, 246), (249, 115, 22), (22, 163, 74), (168, 85, 247), (236, 72, 153), (20, 184, 166), (234, 179, 8), (120, 83, 65),
    (79, 70, 229), (132, 204, 22), (190, 24, 93), (14, 165, 233), (101, 111, 130), (244, 114, 182), (6, 95, 70), (217, 119, 87),
)  # fmt: skip
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
    names = names or [f"snake {slot + 1}" for slot in range(state.num_snakes)]
    drawn = board_from_state(state, board, [str(slot) for slot in range(state.num_snakes)])
    for snake in drawn["snakes"]:
        slot = int(snake["id"])
        snake["name"], snake["customizations"] = (
            names[slot],
            customizations[slot] if customizations else {"color": to_hex(PALETTE[slot])},
        )
    return drawn


def is_dead(snake: dict[str, Any]) -> bool:
    """Whether the snake of a board dict has been eliminated."""
    return bool(snake.get("eliminatedCause"))


def display_name(snake: dict[str, Any]) -> str:
    """Return the snake's name in a form that may be printed: without control characters, at most
    `MAX_NAME` characters.
    """
    name = _printable(snake.get("name") or snake["id"])
    if len(name) <= MAX_NAME:
        return name
    return name[: MAX_NAME - 1] + "…"


def _printable(text: Any) -> str:
    """The text without control characters."""
    return "".join(c for c in str(text) if c.isprintable())


def look_in_words(snake: dict[str, Any]) -> str:
    """Return the names of the head and tail that the snake chose; "" if it chose none. Painters
    draw all snakes alike.
    """
    chosen = snake.get("customizations") or {}
    names = {part: _printable(chosen.get(part) or "")[:MAX_NAME] for part in ("head", "tail")}
    return ", ".join(
        f"{part} {name}" for part, name in names.items() if name not in ("", "default")
    )


def fate(board: Board, snake: dict[str, Any]) -> str:
    """Return in words how a dead snake died: the cause, who is to blame, and the turn."""
    killers = [
        display_name(s)
        for s in board["snakes"]
        if s["id"] == snake.get("eliminatedBy") != snake["id"]
    ]
    by = f" by {killers[0]}" if killers else ""
    if snake.get("eliminatedOnTurn"):
        when = f", turn {snake['eliminatedOnTurn']}"
    else:
        when = ""
    return f"{_printable(snake['eliminatedCause'])[:MAX_NAME]}{by}{when}"


def snake_colors(board: Board) -> list[Color]:
    """Return a colour for each snake of the list: the one that it chose, or one of the palette's.

    The palette's is for snakes that chose none, or one that an earlier snake has.
    """
    chosen: list[Color | None] = []
    for snake in board["snakes"]:
        color = from_hex((snake.get("customizations") or {}).get("color"))
        chosen.append(None if color in chosen else color)
    spare = iter([color for color in PALETTE if color not in chosen] * 2)
    return [color or next(spare, PALETTE[0]) for color in chosen]


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


def direction(board: Board, start: dict[str, int], end: dict[str, int]) -> int | None:
    """Return the move that leads from a point to the next, also across an edge; None if they are
    the same or no neighbours.
    """
    dx = end["x"] - start["x"]
    dy = end["y"] - start["y"]
    for delta, side, forward, back in (
        (dx, board["width"], RIGHT, LEFT),
        (dy, board["height"], UP, DOWN),
    ):
        other = dy if forward == RIGHT else dx
        if other == 0 and delta in (1, 1 - side):
            return forward
        if other == 0 and delta in (-1, side - 1):
            return back
    return None


def on_board(board: Board, point: dict[str, int]) -> bool:
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
