"""Draws a board for the terminal, in 24-bit colours or as plain text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
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
    scene,
    snake_colors,
)
from envs.battlesnake.state import DOWN, FULL_HEALTH, LEFT, RIGHT, UP, State

_BAR_WIDTH = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_HEADS = "▲▼◀▶"
_STEPS = "↑↓←→"
_EYES = ("''", "..", ": ", " :")
_SHADES = " ░▒▓"
_BIT_AND_MOVE = ((1, UP), (2, DOWN), (4, LEFT), (8, RIGHT))
_DARK: Color = (18, 20, 28)
_GROUND: tuple[Color, Color] = ((32, 35, 46), (38, 41, 53))
_HAZARD: Color = (121, 60, 140)
_GREY: Color = (120, 125, 140)
_WHITE: Color = (235, 238, 245)


class Cell(NamedTuple):
    """Two characters of the picture and their colours."""

    text: str
    ink: Color
    ground: Color


def draw(
    state: State,
    board: int,
    names: Sequence[str] | None = None,
    color: bool = True,
    columns: int | None = None,
    customizations: Sequence[Mapping[str, str]] | None = None,
) -> str:
    """Return board `board` of a state as text with a side panel: height + 2 lines or more, without
    a newline at the end.

    y is up, so row 0 is the lowest. Each cell is two characters wide. Plain text (`color=False`)
    shows a head as a capital letter and an arrow (`A▲`), a body cell as a small letter and an arrow
    towards the head (`a→`), food as `●`, and hazard layers as `░ ▒ ▓`. In colour, heads have eyes,
    and bodies darken towards the tail. `names` and `customizations` have one entry per slot. If
    board and panel don't fit beside each other in `columns` characters (None: any width), the panel
    stands below the board."""
    return draw_board(scene(state, board, names, customizations), color=color, columns=columns)


def draw_board(board: Board, *, color: bool = True, columns: int | None = None) -> str:
    """Return a board dict in webhook form (see `envs.battlesnake.render.scene`) as text, as `draw`
    does.
    """
    colors = snake_colors(board)
    if color:
        cells = _coloured_cells(board, colors)
        style = _style
    else:
        cells = _plain_cells(board)
        style = _unstyled
    edge = "──" * board["width"]
    title = f" turn {board.get('turn', 0)} "
    top_edge = edge
    if len(title) < len(edge):
        top_edge = title + edge[len(title) :]
    lines = [style(f"╭{top_edge}╮", _GREY)]
    for row in reversed(cells):
        inside = "".join(style(cell.text, cell.ink, cell.ground) for cell in row)
        lines.append(style("│", _GREY) + inside + style("│", _GREY))
    lines.append(style(f"╰{edge}╯", _GREY))
    panel = _panel(board, colors, style)
    if columns is not None and columns < 2 * board["width"] + 4 + _panel_width(board):
        return "\n".join([*lines, *panel]).rstrip()
    # The panel begins one line below the top edge, and may be longer than the board.
    blank = " " * (2 * board["width"] + 2)
    beside = zip_longest(lines[1:], panel, fillvalue="")
    rows = [f"{line or blank}  {panel_line}".rstrip() for line, panel_line in beside]
    return "\n".join([lines[0], *rows])


def _grid(board: Board, cell_at: Callable[[int, int], Cell]) -> list[list[Cell]]:
    """Return the cells of the board by row and column, row 0 first, which is the lowest."""
    return [_row(board["width"], y, cell_at) for y in range(board["height"])]


def _row(width: int, y: int, cell_at: Callable[[int, int], Cell]) -> list[Cell]:
    return [cell_at(x, y) for x in range(width)]


def _plain_cells(board: Board) -> list[list[Cell]]:
    cells = _grid(board, lambda x, y: Cell("· ", _GREY, _DARK))
    for (x, y), layers in hazard_layers(board).items():
        cells[y][x] = Cell(_SHADES[min(3, layers)] * 2, _GREY, _DARK)
    for food in _inside(board, board["food"]):
        under = cells[food["y"]][food["x"]].text
        cells[food["y"]][food["x"]] = Cell("●" + under[1], FOOD_COLOR, _DARK)
    for index, snake in _living(board):
        letter = chr(ord("a") + index)
        for entry, point, towards in _trace(board, snake):
            if entry:
                text = letter + _STEPS[towards]
            else:
                text = letter.upper() + _HEADS[towards]
            cells[point["y"]][point["x"]] = Cell(text, _WHITE, _DARK)
    return cells


def _coloured_cells(board: Board, colors: list[Color]) -> list[list[Cell]]:
    hazards = hazard_layers(board)
    cells = _grid(board, lambda x, y: _ground(x, y, hazards.get((x, y), 0)))
    for food in _inside(board, board["food"]):
        cells[food["y"]][food["x"]] = cells[food["y"]][food["x"]]._replace(
            text="● ", ink=FOOD_COLOR
        )
    for index, snake in _living(board):
        length = len(snake["body"])
        for entry, point, towards in _trace(board, snake):
            if entry == 0:
                cell = Cell(_EYES[towards], _DARK, blend(colors[index], _WHITE, 0.25))
            else:
                skin = blend(colors[index], _DARK, 0.1 + 0.45 * entry / length)
                cell = Cell(_spine(board, snake["body"], entry), blend(skin, _DARK, 0.35), skin)
            cells[point["y"]][point["x"]] = cell
    return cells


def _ground(x: int, y: int, layers: int) -> Cell:
    ground = _GROUND[(x + y) % 2]
    if not layers:
        return Cell("  ", _GREY, ground)
    tinted = blend(ground, _HAZARD, 1 - 0.6**layers)
    return Cell("░░", blend(tinted, _WHITE, 0.2), tinted)


def _spine(board: Board, body: list[Point], entry: int) -> str:
    """Return two box characters that join a body cell with the ones before and after it."""
    towards = {direction(board, body[entry], body[entry - 1])}
    if entry + 1 < len(body):
        towards.add(direction(board, body[entry], body[entry + 1]))
    # Each direction is a bit of the shape's number.
    shape = sum(bit for bit, move in _BIT_AND_MOVE if move in towards)
    bridge = "━" if RIGHT in towards else " "
    return " ╹╻┃╸┛┓┫╺┗┏┣━┻┳╋"[shape] + bridge


def _living(board: Board) -> list[tuple[int, Snake]]:
    return [(index, snake) for index, snake in enumerate(board["snakes"]) if not is_dead(snake)]


def _inside(board: Board, points: list[Point]) -> list[Point]:
    return [point for point in points if on_board(board, point)]


def _trace(board: Board, snake: Snake) -> list[tuple[int, Point, int]]:
    """Return (entry, point, move towards the head) from tail to head. Stacked entries point where
    the lowest of them does.
    """
    body = snake["body"]
    traced = []
    towards = UP
    for entry, point in enumerate(body):
        if entry == 0:
            neck = next((p for p in body if p != point), point)
            towards = _or_up(direction(board, neck, point))
        elif point != body[entry - 1]:
            towards = _or_up(direction(board, point, body[entry - 1]))
        if on_board(board, point):
            traced.append((entry, point, towards))
    return traced[::-1]


def _or_up(move: int | None) -> int:
    if move is None:
        return UP
    return move


def _panel_width(board: Board) -> int:
    """Return the number of characters of the panel's longest line."""
    lines = _panel(board, [_GREY] * len(board["snakes"]), _unstyled)
    return max(map(len, lines), default=0)


def _panel(board: Board, colors: list[Color], style: Any) -> list[str]:
    lines: list[str] = []
    for index, color in enumerate(colors):
        lines += _card(board, index, color, style)
    return lines


def _card(board: Board, index: int, color: Color, style: Any) -> list[str]:
    """Return three lines about a snake: name and length, health bar or cause of death, and an empty
    line.
    """
    snake = board["snakes"][index]
    letter = chr(ord("A") + index)
    name = display_name(snake)
    length = len(snake["body"])
    if is_dead(snake):
        return [
            style(f"{letter} {name}  length {length}", _GREY),
            style(f"  † {fate(board, snake)}", _GREY),
            "",
        ]
    health = int(snake["health"])
    bar = style(_bar(health), blend((239, 68, 68), color, min(1.0, health / 50)), _GROUND[0])
    about = ", ".join(filter(None, (f"length {length}", look_in_words(snake))))
    title = style(letter, _DARK, color) + style(f" {name}", color) + style(f"  {about}", _GREY)
    return [title, f"  {bar} {health:3d}", ""]


def _bar(health: int) -> str:
    eighths = round(health / FULL_HEALTH * _BAR_WIDTH * 8)
    full, rest = divmod(eighths, 8)
    bar = "█" * full
    if rest:
        bar += _EIGHTHS[rest]
    return bar.ljust(_BAR_WIDTH)


def _style(text: str, ink: Color, ground: Color | None = None) -> str:
    """Return the text in 24-bit colours, by the escape sequences of terminals."""
    codes = "38;2;{};{};{}".format(*ink)
    if ground is not None:
        codes += ";48;2;{};{};{}".format(*ground)
    return f"\x1b[{codes}m{text}\x1b[0m"


def _unstyled(text: str, ink: Color, ground: Color | None = None) -> str:
    return text
