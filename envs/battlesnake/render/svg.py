"""Draws a game that plays by itself as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from envs.battlesnake.plain import Board
from envs.battlesnake.render.geometry import (
    INK,
    PAPER,
    SQUARE,
    TRACK,
    Box,
    Disc,
    Group,
    Label,
    Picture,
    Polygon,
    Stroke,
    picture,
)
from envs.battlesnake.render.scene import to_hex
from envs.common.errors import ConfigError
from envs.common.palette import ROLES

DEFAULT_CELL = 32
_DARK = {
    ".paper": "surface",
    f'rect[fill="{to_hex(SQUARE)}"]': "square",
    f'rect[fill="{to_hex(TRACK)}"]': "line",
    f'text[fill="{to_hex(INK)}"]': "ink",
}
"""The role of each thing's colour on a dark screen, by its CSS selector."""
_DARK_RULES = "".join(f"{name}{{fill:{ROLES[role][1]}}}" for name, role in _DARK.items())
_DARK_STYLE = f"<style>@media (prefers-color-scheme:dark){{{_DARK_RULES}}}</style>"


def animated_svg(
    boards: Sequence[Board], *, fps: float = 8.0, cell: int = DEFAULT_CELL, panel: bool = True
) -> str:
    """Return an SVG document that shows the boards of a game one after another, for ever, without
    scripts.

    The boards are dicts in webhook form (see `envs.battlesnake.render.scene`). `cell` is the side
    of a cell in pixels. Raises `ConfigError` if there are no boards, or if `fps` isn't positive.
    """
    if not boards or fps <= 0:
        raise ConfigError(f"{len(boards)} boards at {fps} fps make no animation")
    plans = [picture(board, panel=panel) for board in boards]
    seconds = len(plans) / fps
    frames = [
        '<g class="turn"'
        f' style="animation-delay:{index / fps - seconds:.3f}s">{_elements(plan.shapes, cell)}</g>'
        for index, plan in enumerate(plans)
    ]
    if len(plans) > 1:
        style = (
            f".turn{{visibility:hidden;animation:show {seconds:.3f}s step-end infinite}}"
            "@keyframes show{0%{visibility:visible}"
            f"{100 / len(plans):.5f}%{{visibility:hidden}}}}"
        )
    else:
        style = ""
    return _document(
        max(plans, key=lambda plan: plan.height), cell, f"<style>{style}</style>" + "".join(frames)
    )


def _document(plan: Picture, cell: int, content: str) -> str:
    width = plan.width * cell
    height = plan.height * cell
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    paper = f'<rect class="paper" width="100%" height="100%" fill="{to_hex(PAPER)}"/>'
    fonts = 'font-family="Helvetica,Arial,sans-serif"'
    backdrop = _elements(plan.backdrop, cell)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}'
        f" {fonts}>{paper}<g>{backdrop}</g>{content}{_DARK_STYLE}</svg>\n"
    )


def _elements(shapes: Sequence[object], k: int) -> str:
    return "".join(_element(shape, k) for shape in shapes)


def _element(shape: object, k: int) -> str:
    """Return the SVG element of a shape, whose lengths are multiplied by k."""
    match shape:
        case Box(x, y, width, height, radius, color):
            size = f'width="{width * k:.5g}" height="{height * k:.5g}" rx="{radius * k:.4g}"'
            return f'<rect x="{x * k:.5g}" y="{y * k:.5g}" {size} fill="{to_hex(color)}"/>'
        case Disc(x, y, radius, color):
            return (
                f'<circle cx="{x * k:.5g}" cy="{y * k:.5g}" r="{radius * k:.4g}"'
                f' fill="{to_hex(color)}"/>'
            )
        case Polygon(points, color):
            return f'<polygon points="{_points(points, k)}" fill="{to_hex(color)}"/>'
        case Stroke(points, width, color):
            pen = (
                f'fill="none" stroke="{to_hex(color)}" stroke-width="{width * k:.4g}"'
                ' stroke-linejoin="round"'
            )
            return f'<polyline points="{_points(points, k)}" {pen}/>'
        case Label(x, y, size, text, color, right):
            anchor = ' text-anchor="end"' if right else ""
            place = f'x="{x * k:.5g}" y="{y * k:.5g}" font-size="{size * k:.4g}"{anchor}'
            return f'<text {place} fill="{to_hex(color)}">{escape(text)}</text>'
        case Group(members, opacity):
            return f'<g opacity="{opacity:g}">{_elements(members, k)}</g>'
    raise TypeError(f"no SVG for {shape!r}")


def _points(points: Sequence[tuple[float, float]], k: int) -> str:
    return " ".join(f"{x * k:.5g},{y * k:.5g}" for x, y in points)
