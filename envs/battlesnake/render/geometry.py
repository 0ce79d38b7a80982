"""Says where everything in a picture of a board goes. All painters share this geometry.

Lengths are in cells; x goes to the right and y down from the upper left corner of the picture. It
looks like the official board: light squares, flat snakes as wide as a cell that run through the
gaps, dead snakes faded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from envs.battlesnake.plain import Board
from envs.battlesnake.render.scene import (
    FOOD_COLOR,
    Color,
    blend,
    direction,
    display_name,
    fate,
    hazard_layers,
    is_dead,
    look_in_words,
    on_board,
    snake_colors,
)
from envs.battlesnake.state import FULL_HEALTH, UP

Spot = tuple[float, float]

PAPER: Color = (255, 255, 255)
MARGIN = 0.5
_SQUARE: Color = (240, 240, 242)
_HAZARD: Color = (56, 42, 74)
_INK: Color = (44, 48, 58)
_FAINT: Color = (150, 154, 165)
_TRACK: Color = (229, 230, 235)
_SQUARE_SIDE = 0.86
_BODY_WIDTH = 0.8
_TAIL_WIDTH = 0.4
_HEAD_RADIUS = 0.47
_PANEL_WIDTH = 8.0
_TITLE_HEIGHT = 1.4
_FATE_CHARACTERS = 36
_LOOK_CHARACTERS = 48
_SEEN_DEAD = 0.13
_OFFSETS = ((0, -1), (0, 1), (-1, 0), (1, 0))


class Box(NamedTuple):
    """A rectangle with rounded corners; (x, y) is its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    radius: float
    color: Color


class Disc(NamedTuple):
    """A filled circle around (x, y)."""

    x: float
    y: float
    radius: float
    color: Color


class Stroke(NamedTuple):
    """A thick line along the axes through two points or more, with flat ends and round joints."""

    points: tuple[Spot, ...]
    width: float
    color: Color


class Polygon(NamedTuple):
    """A filled polygon."""

    points: tuple[Spot, ...]
    color: Color


class Label(NamedTuple):
    """A line of text with its baseline at y. It begins at x, or ends there if `right` is set."""

    x: float
    y: float
    size: float
    text: str
    color: Color
    right: bool = False


class Group(NamedTuple):
    """Shapes that are painted together and then laid over the picture with an opacity in (0, 1]."""

    shapes: tuple[Any, ...]
    opacity: float


class Picture(NamedTuple):
    """A picture: its size in cells, and the shapes in the order of painting.

    `backdrop` stays the same for a whole game, `shapes` belong to this turn.
    """

    width: float
    height: float
    backdrop: tuple[Any, ...]
    shapes: tuple[Any, ...]


def picture(board: Board, *, panel: bool = False) -> Picture:
    """Return the picture of a board dict. With `panel`, names, lengths, healths and causes of death
    stand to its right.
    """
    width = board["width"] + 2 * MARGIN
    height = board["height"] + 2 * MARGIN
    colors = snake_colors(board)
    shapes = [
        *_hazards(board),
        *_snakes(board, colors, dead=True),
        *_food(board),
        *_snakes(board, colors, dead=False),
    ]
    if panel:
        block = min(2.4, max(1.5, (board["height"] - _TITLE_HEIGHT) / max(1, len(colors))))
        height = max(height, 2 * MARGIN + _TITLE_HEIGHT + block * len(colors))
        shapes += _panel(board, colors, width, block)
        width += _PANEL_WIDTH
    squares = [
        _cell_box(board, x, y, _SQUARE)
        for y in range(board["height"])
        for x in range(board["width"])
    ]
    return Picture(width, height, tuple(squares), tuple(shapes))


def _center(board: Board, point: dict[str, int]) -> Spot:
    return MARGIN + point["x"] + 0.5, MARGIN + board["height"] - 1 - point["y"] + 0.5


def _cell_box(board: Board, x: int, y: int, color: Color) -> Box:
    inset = (1 - _SQUARE_SIDE) / 2
    return Box(
        MARGIN + x + inset,
        MARGIN + board["height"] - 1 - y + inset,
        _SQUARE_SIDE,
        _SQUARE_SIDE,
        0.1,
        color,
    )


def _hazards(board: Board) -> list[Box]:
    return [
        _cell_box(board, x, y, blend(_SQUARE, _HAZARD, 1 - 0.62**layers))
        for (x, y), layers in hazard_layers(board).items()
    ]


def _food(board: Board) -> list[Disc]:
    return [
        Disc(*_center(board, point), 0.27, FOOD_COLOR)
        for point in board["food"]
        if on_board(board, point)
    ]


def _snakes(board: Board, colors: list[Color], *, dead: bool) -> list[Any]:
    drawn: list[Any] = []
    for snake, color in zip(board["snakes"], colors, strict=True):
        if is_dead(snake) == dead:
            shapes = _snake(board, snake["body"], color)
            drawn += [Group(tuple(shapes), _SEEN_DEAD)] if dead else shapes
    return drawn


def _snake(board: Board, body: list[dict[str, int]], color: Color) -> list[Any]:
    runs = _runs(board, body)
    shapes: list[Any] = [Disc(*run[0], _BODY_WIDTH / 2, color) for run in runs[1:] if len(run) == 1]
    if len(runs[-1]) > 1:
        shapes += _tail(runs[-1].pop(), runs[-1][-1], color)
    shapes += [Stroke(tuple(run), _BODY_WIDTH, color) for run in runs if len(run) > 1]
    return shapes + _head(board, body, color)


def _runs(board: Board, body: list[dict[str, int]]) -> list[list[Spot]]:
    """The body's cell centres from head to tail, repeats left out, cut in two wherever it goes
    across the edge.

    It is also cut between cells that are no neighbours, which a recording of another program may
    hold."""
    runs = [[_center(board, body[0])]]
    for before, point in pairwise(body):
        if before == point:
            continue
        here = _center(board, before)
        there = _center(board, point)
        move = direction(board, before, point)
        if move is None:
            runs.append([])
        elif abs(here[0] - there[0]) + abs(here[1] - there[1]) > 1:
            dx, dy = _OFFSETS[move]
            runs[-1].append((here[0] + dx / 2, here[1] + dy / 2))
            runs.append([(there[0] - dx / 2, there[1] - dy / 2)])
        runs[-1].append(there)
    return runs


def _tail(end: Spot, root: Spot, color: Color) -> list[Any]:
    """A taper from full width at the next-to-last cell to a round tip at the last."""
    across = (end[1] - root[1], root[0] - end[0])
    distance = abs(across[0] + across[1]) or 1.0
    nx = across[0] / distance
    ny = across[1] / distance
    wide = _BODY_WIDTH / 2
    thin = _TAIL_WIDTH / 2
    corners = (
        (root[0] + nx * wide, root[1] + ny * wide),
        (end[0] + nx * thin, end[1] + ny * thin),
        (end[0] - nx * thin, end[1] - ny * thin),
        (root[0] - nx * wide, root[1] - ny * wide),
    )
    at_edge = any((coordinate - MARGIN) % 1 == 0 for coordinate in root)
    joint = [] if at_edge else [Disc(*root, wide, color)]
    return [*joint, Polygon(corners, color), Disc(*end, thin, color)]


def _head(board: Board, body: list[dict[str, int]], color: Color) -> list[Any]:
    x, y = _center(board, body[0])
    neck = next((point for point in body if point != body[0]), None)
    move = UP if neck is None else direction(board, neck, body[0])
    fx, fy = _OFFSETS[UP if move is None else move]
    shapes: list[Any] = [Disc(x, y, _HEAD_RADIUS, color)]
    for side in (-1, 1):
        ex = x + 0.14 * fx - 0.2 * side * fy
        ey = y + 0.14 * fy + 0.2 * side * fx
        shapes += [Disc(ex, ey, 0.145, PAPER), Disc(ex + 0.05 * fx, ey + 0.05 * fy, 0.075, _INK)]
    return shapes


def _panel(board: Board, colors: list[Color], left: float, block: float) -> list[Any]:
    shapes: list[Any] = [Label(left, MARGIN + 0.72, 0.72, f"Turn {board.get('turn', 0)}", _INK)]
    for index, (snake, color) in enumerate(zip(board["snakes"], colors, strict=True)):
        shapes += _card(board, snake, color, left, MARGIN + _TITLE_HEIGHT + index * block)
    return shapes


def _card(board: Board, snake: dict[str, Any], color: Color, x: float, y: float) -> list[Any]:
    width = _PANEL_WIDTH - 2 * MARGIN
    ink = _FAINT if is_dead(snake) else _INK
    shapes: list[Any] = [
        Disc(x + 0.2, y + 0.3, 0.2, blend(color, PAPER, 0.75) if is_dead(snake) else color),
        Label(x + 0.6, y + 0.49, 0.52, display_name(snake), ink),
        Label(x + width, y + 0.49, 0.52, str(len(snake["body"])), ink, right=True),
    ]
    if is_dead(snake):
        told = fate(board, snake)
        if len(told) <= _FATE_CHARACTERS:
            told = told
        else:
            told = told[: _FATE_CHARACTERS - 1] + "…"
        return [*shapes, Label(x + 0.6, y + 1.05, 0.36, told, _FAINT)]
    filled = width * max(0, min(FULL_HEALTH, int(snake["health"]))) / FULL_HEALTH
    bar = [Box(x, y + 0.76, width, 0.34, 0.17, _TRACK)]
    if filled:
        bar.append(Box(x, y + 0.76, max(0.34, filled), 0.34, 0.17, color))
    look = look_in_words(snake)
    return (
        shapes + bar + ([Label(x, y + 1.42, 0.3, look[:_LOOK_CHARACTERS], _FAINT)] if look else [])
    )
