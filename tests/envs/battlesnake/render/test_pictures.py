"""Pictures: what stands where, in text, pixels and SVG, and that all painters draw one geometry."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from envs.battlesnake.plain import state_from_board
from envs.battlesnake.render.ansi import draw, draw_board
from envs.battlesnake.render.geometry import Disc, Group, Stroke, picture
from envs.battlesnake.render.rgb import paint, rgb_array
from envs.battlesnake.render.scene import FOOD_COLOR, PALETTE, snake_colors
from envs.battlesnake.render.svg import animated_svg
from envs.common.errors import ConfigError

SVG = "{http://www.w3.org/2000/svg}"
CELL = 20


def _points(*points):
    return [{"x": x, "y": y} for x, y in points]


def _snake(name, *body, health=100, **more):
    return {"id": name, "name": name, "health": health, "body": _points(*body), **more}


def _board(*snakes, width=6, height=4, food=(), hazards=(), turn=7):
    board = {
        "turn": turn,
        "width": width,
        "height": height,
        "food": _points(*food),
        "hazards": _points(*hazards),
    }
    return {**board, "snakes": list(snakes)}


L_SHAPE = _snake("ann", (2, 1), (1, 1), (1, 2), (1, 2), health=50)
FALLEN = _snake(
    "bob", (5, 3), (5, 2), eliminatedCause="head-collision", eliminatedBy="ann", eliminatedOnTurn=7
)
BOARD = _board(L_SHAPE, FALLEN, food=[(4, 0)], hazards=[(0, 0), (3, 3), (3, 3), (0, 9)])


def test_plain_text_shows_every_cell_in_its_place():
    lines = draw_board(BOARD, color=False).split("\n")
    assert lines[0] == "╭ turn 7 ────╮"
    assert [line[:14] for line in lines[1:5]] == [
        "│· · · ▒▒· · │",
        "│· a↓· · · · │",
        "│· a→A▶· · · │",
        "│░░· · · ● · │",
    ]
    assert lines[1].endswith("A ann  length 4")
    assert lines[2].endswith("  ██████████            50")
    assert lines[4].endswith("B bob  length 2")
    assert lines[5].endswith("† head-collision by ann, turn 7")


def test_a_state_is_drawn_like_its_board():
    board = _board(_snake("0", (2, 1), (1, 1), (1, 2)), food=[(4, 0)])
    assert draw(state_from_board(board), 0, ["0"], color=False) == draw_board(board, color=False)


def test_colour_changes_the_style_but_not_the_layout():
    plain, coloured = (draw_board(BOARD, color=color).split("\n") for color in (False, True))
    bare = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured]
    assert [len(line.rstrip()) for line in bare] == [len(line.rstrip()) for line in plain]
    assert all(line.count("\x1b[38") == line.count("\x1b[0m") for line in coloured)


def test_a_start_stack_is_a_head_looking_up():
    assert "A▲" in draw_board(_board(_snake("a", (1, 1), (1, 1), (1, 1))), color=False)


def test_bodies_run_across_the_edge_of_a_wrapped_board():
    lines = draw_board(_board(_snake("a", (0, 1), (5, 1), (5, 0), (5, 3))), color=False).split("\n")
    assert [line[:14] for line in lines[1:5]] == [
        "│· · · · · a↑│",
        "│· · · · · · │",
        "│A▶· · · · a→│",
        "│· · · · · a↑│",
    ]


def test_names_cannot_smuggle_control_characters_into_the_terminal():
    evil = _snake("a", (1, 1), customizations={"color": "\x1b[2J"}) | {"name": "\x1b[2J\x07evil\n"}
    assert "\x1b[2J" not in draw_board(_board(evil))
    assert "[2Jevil" in draw_board(_board(evil), color=False)


def test_every_snake_of_a_full_board_has_its_own_colour():
    assert len(set(PALETTE)) == 16
    snakes = [_snake(str(i), (i % 6, i // 6)) for i in range(16)]
    assert len(set(snake_colors(_board(*snakes)))) == 16


def test_a_chosen_colour_is_kept_unless_taken_or_grey_by_default():
    chosen = [_snake("a", (0, 0)), _snake("b", (1, 0)), _snake("c", (2, 0)), _snake("d", (3, 0))]
    for snake, color in zip(chosen, ("#102030", "#102030", "#888888", "javascript:alert(1)")):
        snake["customizations"] = {"color": color}
    assert snake_colors(_board(*chosen)) == [(16, 32, 48), *PALETTE[:3]]


def _pixel(image, x, y):
    """The colour in the middle of a cell of the board, which is 4 high."""
    return image[int((4 - y) * CELL), int((x + 1) * CELL)]


def test_pixels_show_every_cell_in_its_place():
    image = np.asarray(paint(BOARD, cell=CELL))
    assert image.shape == ((4 + 1) * CELL, (6 + 1) * CELL, 3)
    assert image.dtype == np.uint8
    body = _pixel(image, 1, 1)
    empty = _pixel(image, 0, 3)
    assert tuple(body) == PALETTE[0]
    assert tuple(_pixel(image, 4, 0)) == FOOD_COLOR
    hazard = _pixel(image, 0, 0)
    deep = _pixel(image, 3, 3)
    assert empty.mean() > hazard.mean() > deep.mean()
    faded = _pixel(image, 5, 2)
    assert (
        np.abs(faded.astype(int) - empty) <= 0.2 * np.abs(np.array(PALETTE[1]) - empty) + 1
    ).all()
    assert not np.array_equal(faded, empty)


def test_a_body_joins_consecutive_cells_only():
    """Gaps between cells are bridged along the body and stay open beside it."""
    u_turn = _snake("a", (1, 2), (1, 1), (2, 1), (2, 2), (2, 3))
    image = np.asarray(paint(_board(u_turn), cell=CELL))
    assert tuple(_pixel(image, 1.5, 1)) == PALETTE[0]
    assert tuple(_pixel(image, 1.5, 2)) != PALETTE[0]


def test_the_eyes_look_ahead():
    """The pupils lie on the side of the head towards which the snake goes."""
    for neck, axis, sign in (((2, 1), 1, -1), ((2, 3), 1, 1), ((3, 2), 0, -1), ((1, 2), 0, 1)):
        shapes = picture(_board(_snake("a", (2, 2), neck), height=5)).shapes
        head = next(s for s in shapes if isinstance(s, Disc) and s.radius > 0.45)
        pupils = [s for s in shapes if isinstance(s, Disc) and s.radius < 0.1]
        assert len(pupils) == 2
        assert all((pupil[axis] - head[axis]) * sign > 0.1 for pupil in pupils)


def test_no_stroke_crosses_a_wrapped_board():
    board = _board(_snake("a", (0, 1), (5, 1), (5, 0), (5, 3), (4, 3)))
    strokes = [shape for shape in picture(board).shapes if isinstance(shape, Stroke)]
    assert strokes
    for stroke in strokes:
        for (ax, ay), (bx, by) in zip(stroke.points, stroke.points[1:]):
            assert abs(ax - bx) + abs(ay - by) <= 1


@pytest.mark.parametrize(
    ("cells", "lone"),
    [
        ([(0, 0), (0, 1), (4, 3)], (4, 3)),
        ([(0, 0), (4, 3), (2, 0), (2, 1)], (4, 3)),
        ([(2, 2), (3, 3), (3, 2)], None),
        ([(2, 2), (2, 0)], (2, 0)),
        ([(2, 2), (4, 2), (4, 2), (1, 2)], (4, 2)),
    ],
    ids=str,
)
def test_a_body_with_gaps_is_drawn_cell_by_cell(cells, lone):
    """Recordings of other programs may hold such bodies; both painters show every cell and join
    only neighbours.
    """
    board = _board(_snake("a", *cells))
    image = np.asarray(paint(board, cell=CELL))
    for x, y in cells[1:]:
        assert tuple(_pixel(image, x, y)) == PALETTE[0]
    lines = ElementTree.fromstring(animated_svg([board], cell=CELL, panel=False)).findall(
        f".//{SVG}polyline"
    )
    for line in lines:
        points = line.get("points").split()
        assert len(set(points)) == len(points)
    discs = [
        shape for shape in picture(board).shapes if isinstance(shape, Disc) and shape.radius == 0.4
    ]
    assert lone is None or any((disc.x - 1, 4 - disc.y) == lone for disc in discs)


def test_dead_snakes_lie_under_the_living_and_faded():
    kinds = [type(shape) for shape in picture(BOARD).shapes]
    assert kinds.count(Group) == 1
    assert kinds.index(Group) < kinds.index(Stroke)


def test_a_head_off_the_board_is_drawn_without_fail():
    crashed = _snake(
        "a", (-1, 2), (0, 2), (1, 2), eliminatedCause="wall-collision", eliminatedOnTurn=3
    )
    board = _board(crashed, food=[(9, 9)])
    assert paint(board).size == (7 * 32, 5 * 32)
    assert "wall-collision" in draw_board(board, color=False)


def test_svg_draws_the_same_shapes():
    """As many elements of each kind as the geometry has shapes, the head where the pixels have
    it.
    """
    root = ElementTree.fromstring(animated_svg([BOARD], cell=CELL, panel=False))
    plan = picture(BOARD)
    flat = [
        s
        for shape in (*plan.backdrop, *plan.shapes)
        for s in (shape.shapes if isinstance(shape, Group) else [shape])
    ]
    assert len(root.findall(f".//{SVG}circle")) == sum(isinstance(s, Disc) for s in flat)
    assert len(root.findall(f".//{SVG}polyline")) == sum(isinstance(s, Stroke) for s in flat)
    assert (root.get("width"), root.get("height")) == ("140", "100")
    food = next(c for c in root.iter(f"{SVG}circle") if c.get("fill") == "#ef445c")
    assert (float(food.get("cx")), float(food.get("cy"))) == (5 * CELL, 4 * CELL)


def test_svg_escapes_names():
    evil = _snake("<script>alert(1)</script>&", (1, 1))
    text = animated_svg([_board(evil)])
    assert "<script" not in text
    ElementTree.fromstring(text)


def test_animated_svg_shows_one_turn_at_a_time():
    boards = [_board(L_SHAPE, turn=turn) for turn in range(4)]
    root = ElementTree.fromstring(animated_svg(boards, fps=2))
    turns = [g for g in root.iter(f"{SVG}g") if g.get("class") == "turn"]
    delays = [float(re.search(r"-?[\d.]+", g.get("style")).group()) for g in turns]
    assert delays == [-2.0, -1.5, -1.0, -0.5]
    style = root.find(f".//{SVG}style").text
    assert "animation:show 2.000s" in style
    assert "25.00000%{visibility:hidden}" in style
    with pytest.raises(ConfigError, match="0 boards"):
        animated_svg([])


def test_the_side_panel_has_room_for_sixteen_snakes():
    snakes = [_snake(f"snake number {i} with a long name", (i % 6, i // 6)) for i in range(16)]
    plan = picture(_board(*snakes), panel=True)
    assert max(s.y for s in plan.shapes if hasattr(s, "text")) < plan.height


def test_a_long_name_ends_before_the_length():
    """The length is written to the right of it, on the same line."""
    name = "battlesnake-ppo-20261128-141312"
    boards = [_board(_snake(text, *[(1, 1)] * 100), width=4) for text in (name, "a")]
    (length,) = (s for s in picture(boards[0], panel=True).shapes if _text_of(s) == "100")
    rows = slice(int((length.y - 0.3) * CELL), int(length.y * CELL))
    long, short = (_ink(paint(board, cell=CELL, panel=True), rows) for board in boards)
    start = short[short > (length.x - 2) * CELL].min()
    assert not set(long) & set(range(start - CELL // 4, start))
    assert start - long[long < start].max() < 2 * CELL


def _text_of(shape):
    return getattr(shape, "text", None)


def _ink(image, rows):
    """The columns in which something is written on these rows."""
    pixels = np.asarray(image)[rows]
    return np.flatnonzero((pixels != pixels[:, -1:]).any(axis=(0, 2)))


def test_rgb_array_of_a_state():
    state = state_from_board(_board(_snake("a", (2, 1), (1, 1), (1, 2))))
    assert rgb_array(state, 0).shape == (5 * 32, 7 * 32, 3)
    assert rgb_array(state, 0, panel=True, cell=8).shape[1] > 7 * 8
