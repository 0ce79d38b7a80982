"""Draws a board for the terminal, in 24-bit colours or as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    cells = _coloured_cells(board, colors) if color else _plain_cells(board)
    style = _style if color else _unstyled
    edge = "──" * board["width"]
    title = f" turn {board.get('turn', 0)} "
    lines = [
        style(
            "╭" + title + edge[len(title) :] + "╮" if len(title) < len(edge) else f"╭{edge}╮", _GREY
        )
    ]
    for row in reversed(cells):
        inside = "".join(style(cell.text, cell.ink, cell.ground) for cell in row)
        lines.append(style("│", _GREY) + inside + style("│", _GREY))
    lines.append(style(f"╰{edge}╯", _GREY))
    panel = [line for i in range(len(colors)) for line in _panel(board, i, colors[i], style)]
    if columns is not None and columns < 2 * board["width"] + 4 + _panel_width(board):
        return "\n".join([*lines, *panel]).rstrip()
    lines += [" " * (2 * board["width"] + 2)] * (len(panel) - len(lines) + 1)
    return "\n".join(
        [lines[0]] + [f"{a}  {b}".rstrip() for a, b in zip(lines[1:], panel + [""] * len(lines))]
    )


def _plain_cells(board: Board) -> list[list[Cell]]:
    cells = [
        [Cell("· ", _GREY, _DARK) for _ in range(board["width"])] for _ in range(board["height"])
    ]
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
    cells = [
        [_ground(x, y, hazards.get((x, y), 0)) for x in range(board["width"])]
        for y in range(board["height"])
    ]
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


def _spine(board: Board, body: list[dict[str, int]], entry: int) -> str:
    """Box characters that join a body cell with the ones before and after it."""
    towards = {direction(board, body[entry], body[entry - 1])}
    if entry + 1 < len(body):
        towards.add(direction(board, body[entry], body[entry + 1]))
    up, down, left, right = (move in towards for move in (UP, DOWN, LEFT, RIGHT))
    shape = up * 1 + down * 2 + left * 4 + right * 8
    return " ╹╻┃╸┛┓┫╺┗┏┣━┻┳╋"[shape] + ("━" if right else " ")


def _living(board: Board) -> list[tuple[int, dict[str, Any]]]:
    return [(index, snake) for index, snake in enumerate(board["snakes"]) if not is_dead(snake)]


def _inside(board: Board, points: list[dict[str, int]]) -> list[dict[str, int]]:
    return [point for point in points if on_board(board, point)]


def _trace(board: Board, snake: dict[str, Any]) -> list[tuple[int, dict[str, int], int]]:
    """(entry, point, move towards the head) from tail to head; stacked entries point where the
    lowest of them does.
    """
    body = snake["body"]
    traced = []
    towards = UP
    for entry, point in enumerate(body):
        if entry == 0:
            neck = next((p for p in body if p != point), None)
            towards = _or_up(direction(board, neck, point) if neck else None)
        elif point != body[entry - 1]:
            towards = _or_up(direction(board, point, body[entry - 1]))
        if on_board(board, point):
            traced.append((entry, point, towards))
    return traced[::-1]


def _or_up(move: int | None) -> int:
    return UP if move is None else move


def _panel_width(board: Board) -> int:
    """Characters of the panel's longest line."""
    texts = [
        line for i in range(len(board["snakes"])) for line in _panel(board, i, _GREY, _unstyled)
    ]
    return max(map(len, texts), default=0)


def _panel(board: Board, index: int, color: Color, style: Any) -> list[str]:
    """Name and length, health bar or cause of death, an empty line."""
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
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(_BAR_WIDTH)


def _style(text: str, ink: Color, ground: Color | None = None) -> str:
    back = "" if ground is None else ";48;2;{};{};{}".format(*ground)
    return "\x1b[38;2;{};{};{}".format(*ink) + f"{back}m{text}\x1b[0m"


def _unstyled(text: str, ink: Color, ground: Color | None = None) -> str:
    return text
