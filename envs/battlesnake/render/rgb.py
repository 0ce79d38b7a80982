"""Paints a board as pixels, with Pillow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from envs.battlesnake.plain import Board
from envs.battlesnake.render.geometry import (
    PAPER,
    Box,
    Disc,
    Group,
    Label,
    Picture,
    Polygon,
    Spot,
    Stroke,
    picture,
)
from envs.battlesnake.render.scene import Color, scene
from envs.battlesnake.state import State

DEFAULT_CELL = 32
_FINENESS = 3


def rgb_array(
    state: State,
    board: int,
    *,
    names: Sequence[str] | None = None,
    cell: int = DEFAULT_CELL,
    panel: bool = False,
) -> np.ndarray:
    """Return a picture of board `board` of a state, uint8 (H, W, 3), with row 0 at the top.

    `cell` is the side of a cell in pixels. H = (height + 1) * cell and W = (width + 1) * cell; the
    side `panel` adds to them."""
    return np.asarray(paint(scene(state, board, names), cell=cell, panel=panel))


def paint(board: Board, *, cell: int = DEFAULT_CELL, panel: bool = False) -> Image.Image:
    """Return a picture of a board dict in webhook form (see `envs.battlesnake.render.scene`) as an
    RGB image.
    """
    plan = picture(board, panel=panel)
    image = _backdrop(plan._replace(shapes=()), cell * _FINENESS).copy()
    image = _paint_shapes(image, plan.shapes, cell * _FINENESS)
    return image.reduce(_FINENESS)


def png(board: Board, *, cell: int = DEFAULT_CELL, panel: bool = False) -> bytes:
    """Return the picture that `paint` makes as the bytes of a PNG file."""
    file = io.BytesIO()
    paint(board, cell=cell, panel=panel).save(file, format="PNG")
    return file.getvalue()


@lru_cache(maxsize=8)
def _backdrop(plan: Picture, scale: int) -> Image.Image:
    size = (
        int(round(plan.width * scale / _FINENESS)) * _FINENESS,
        int(round(plan.height * scale / _FINENESS)) * _FINENESS,
    )
    return _paint_shapes(Image.new("RGB", size, PAPER), plan.backdrop, scale)


def _paint_shapes(image: Image.Image, shapes: Sequence[object], scale: int) -> Image.Image:
    pen = ImageDraw.Draw(image)
    for shape in shapes:
        if isinstance(shape, Group):
            image = Image.blend(
                image, _paint_shapes(image.copy(), shape.shapes, scale), shape.opacity
            )
            pen = ImageDraw.Draw(image)
        else:
            _paint_shape(pen, shape, scale)
    return image


def _paint_shape(pen: ImageDraw.ImageDraw, shape: object, scale: int) -> None:
    match shape:
        case Box(x, y, width, height, radius, color):
            corners = (x * scale, y * scale, (x + width) * scale - 1, (y + height) * scale - 1)
            pen.rounded_rectangle(corners, radius * scale, fill=color)
        case Disc(x, y, radius, color):
            _disc(pen, x * scale, y * scale, radius * scale, color)
        case Polygon(points, color):
            pen.polygon([(x * scale, y * scale) for x, y in points], fill=color)
        case Stroke(points, width, color):
            spots = [(x * scale, y * scale) for x, y in points]
            for start, end in pairwise(spots):
                _bar(pen, start, end, width * scale / 2, color)
            for x, y in spots[1:-1]:
                _disc(pen, x, y, width * scale / 2, color)
        case Label(x, y, size, text, color, right):
            anchor = "rs" if right else "ls"
            font = _font(size * scale)
            pen.text((x * scale, y * scale), text, fill=color, font=font, anchor=anchor)


def _disc(pen: ImageDraw.ImageDraw, x: float, y: float, radius: float, color: Color) -> None:
    pen.ellipse((x - radius, y - radius, x + radius - 1, y + radius - 1), fill=color)


def _bar(pen: ImageDraw.ImageDraw, start: Spot, end: Spot, half: float, color: Color) -> None:
    """Paint a segment along an axis.

    Rectangles meet the discs at the joints to the pixel, and Pillow's thick lines don't.
    """
    x0, x1 = sorted((start[0], end[0]))
    y0, y1 = sorted((start[1], end[1]))
    if x0 == x1:
        x0, x1 = x0 - half, x1 + half
    else:
        y0, y1 = y0 - half, y1 + half
    pen.rectangle((x0, y0, x1 - 1, y1 - 1), fill=color)


@lru_cache(maxsize=32)
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
