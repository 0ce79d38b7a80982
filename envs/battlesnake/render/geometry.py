"""Says where everything in a picture of a board goes. All painters share this geometry.

Lengths are in cells; x goes to the right and y down from the upper left corner of the picture. It
looks like the official board: light squares, flat snakes as wide as a cell that run through the
gaps, dead snakes faded."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any, NamedTuple

from envs.battlesnake.plain import Board, Point, Snake, is_dead
from envs.battlesnake.render.scene import (
    FOOD_COLOR,
    Color,
    blend,
    direction,
    display_name,
    fate,
    hazard_layers,
    look_in_words,
    on_board,
    snake_colors,
)
from envs.battlesnake.state import FULL_HEALTH, UP

Spot = tuple[float, float]

PAPER: Color = (255, 255, 255)
MARGIN = 0.5
SQUARE: Color = (240, 240, 242)
_HAZARD: Color = (56, 42, 74)
INK: Color = (44, 48, 58)
_FAINT: Color = (150, 154, 165)
TRACK: Color = (229, 230, 235)
_SQUARE_SIDE = 0.86
_BODY_WIDTH = 0.8
_TAIL_WIDTH = 0.4
_HEAD_RADIUS = 0.47
_PANEL_WIDTH = 8.0
_CARD_WIDTH = _PANEL_WIDTH - 2 * MARGIN
_TITLE_HEIGHT = 1.4
_NAME_CHARACTERS = 19
_FATE_CHARACTERS = 36
_LOOK_CHARACTERS = 48
_OPACITY_OF_DEAD = 0.13
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
    cells = product(range(board["height"]), range(board["width"]))
    squares = [_cell_box(board, x, y, SQUARE) for y, x in cells]
    return Picture(width, height, tuple(squares), tuple(shapes))


def _center(board: Board, point: Point) -> Spot:
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
        _cell_box(board, x, y, blend(SQUARE, _HAZARD, 1 - 0.62**layers))
        for (x, y), layers in hazard_layers(board).items()
    ]


def _food(board: Board) -> list[Disc]:
    return [
        Disc(*_center(board, point), 0.27, FOOD_COLOR)
        for point in board["food"]
        if on_board(board, point)
    ]


def _snakes(board: Board, colors: list[Color], *, dead: bool) -> list[Any]:
    shapes: list[Any] = []
    for snake, color in zip(board["snakes"], colors, strict=True):
        if is_dead(snake) != dead:
            continue
        body = _snake(board, snake["body"], color)
        if dead:
            shapes.append(Group(tuple(body), _OPACITY_OF_DEAD))
        else:
            shapes += body
    return shapes


def _snake(board: Board, body: list[Point], color: Color) -> list[Any]:
    runs = _runs(board, body)
    shapes: list[Any] = [Disc(*run[0], _BODY_WIDTH / 2, color) for run in runs[1:] if len(run) == 1]
    if len(runs[-1]) > 1:
        shapes += _tail(runs[-1].pop(), runs[-1][-1], color)
    shapes += [Stroke(tuple(run), _BODY_WIDTH, color) for run in runs if len(run) > 1]
    return shapes + _head(board, body, color)


def _runs(board: Board, body: list[Point]) -> list[list[Spot]]:
    """Return the body's cell centres from head to tail, without repeats, cut in two wherever it
    goes across the edge.

    It is also cut between cells that are not neighbours, which a recording of another program may
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
    """Return a taper from full width at the next-to-last cell to a round tip at the last."""
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
    shapes: list[Any] = [Polygon(corners, color), Disc(*end, thin, color)]
    is_at_edge = any((coordinate - MARGIN) % 1 == 0 for coordinate in root)
    if not is_at_edge:
        shapes.insert(0, Disc(*root, wide, color))
    return shapes


def _head(board: Board, body: list[Point], color: Color) -> list[Any]:
    x, y = _center(board, body[0])
    neck = next((point for point in body if point != body[0]), body[0])
    move = direction(board, neck, body[0])
    if move is None:
        move = UP
    fx, fy = _OFFSETS[move]
    shapes: list[Any] = [Disc(x, y, _HEAD_RADIUS, color)]
    for side in (-1, 1):
        ex = x + 0.14 * fx - 0.2 * side * fy
        ey = y + 0.14 * fy + 0.2 * side * fx
        shapes += [Disc(ex, ey, 0.145, PAPER), Disc(ex + 0.05 * fx, ey + 0.05 * fy, 0.075, INK)]
    return shapes


def _panel(board: Board, colors: list[Color], x: float, block: float) -> list[Any]:
    """Return the panel whose left edge is at x, with a card of height `block` per snake."""
    shapes: list[Any] = [Label(x, MARGIN + 0.72, 0.72, f"Turn {board.get('turn', 0)}", INK)]
    for index, (snake, color) in enumerate(zip(board["snakes"], colors, strict=True)):
        y = MARGIN + _TITLE_HEIGHT + index * block
        if is_dead(snake):
            shapes += _title(snake, blend(color, PAPER, 0.75), _FAINT, x, y)
            text = _shortened(fate(board, snake), _FATE_CHARACTERS)
            shapes.append(Label(x + 0.6, y + 1.05, 0.36, text, _FAINT))
        else:
            shapes += _title(snake, color, INK, x, y)
            shapes += _state_of_life(snake, color, x, y)
    return shapes


def _title(snake: Snake, color: Color, ink: Color, x: float, y: float) -> list[Any]:
    """Return a snake's colour, name and length."""
    length = str(len(snake["body"]))
    return [
        Disc(x + 0.2, y + 0.3, 0.2, color),
        Label(x + 0.6, y + 0.49, 0.52, _shortened(display_name(snake), _NAME_CHARACTERS), ink),
        Label(x + _CARD_WIDTH, y + 0.49, 0.52, length, ink, right=True),
    ]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _state_of_life(snake: Snake, color: Color, x: float, y: float) -> list[Any]:
    """Return a living snake's health bar, and the head and tail that it chose."""
    shapes: list[Any] = [Box(x, y + 0.76, _CARD_WIDTH, 0.34, 0.17, TRACK)]
    bar = _CARD_WIDTH * max(0, min(FULL_HEALTH, int(snake["health"]))) / FULL_HEALTH
    if bar:
        shapes.append(Box(x, y + 0.76, max(0.34, bar), 0.34, 0.17, color))
    if look := look_in_words(snake):
        shapes.append(Label(x, y + 1.42, 0.3, look[:_LOOK_CHARACTERS], _FAINT))
    return shapes
