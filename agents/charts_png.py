"""The charts of `agents.charts` as a PNG, for places that show no SVG."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents import charts
from agents.charts import Line

_SCALE, _HEAD, _LINE = 2, 24, 18
_INK, _GRID = "#333333", "#dddddd"


def save_charts(path: Path, titled: Sequence[tuple[str, Sequence[Line]]]) -> None:
    """Write (title, lines) charts below each other, the x axis in the lines' own unit. The file appears whole or not at all."""
    from PIL import Image, ImageDraw

    height = charts.HEIGHT + _HEAD + _LINE * max(len(lines) for _, lines in titled)
    image = Image.new("RGB", (charts.WIDTH * _SCALE, height * len(titled) * _SCALE), "white")
    draw = ImageDraw.Draw(image, "RGBA")
    for place, (title, lines) in enumerate(titled):
        _draw_chart(draw, title, [line for line in lines if line.y.size], place * height)
    part = path.with_name(f".{path.name}.part")
    image.save(part, format="PNG")
    os.replace(part, path)


def _draw_chart(draw: Any, title: str, lines: Sequence[Line], top: int) -> None:
    known = [charts._without_gaps(line) for line in lines]
    known = [line for line in known if len(line.x)]
    _write(draw, (charts.WIDTH / 2, top + 4), title, "ma")
    if not known:
        return
    frame = charts._Frame(np.concatenate([line.x for line in known]), np.append(_heights(known), 0.0))

    def at(x: float, y: float) -> tuple[float, float]:
        across, down = frame.place(x, y)
        return across * _SCALE, (down + top + _HEAD) * _SCALE

    for tick in frame.y_ticks:
        draw.line([at(frame.x_low, tick), at(frame.x_high, tick)], fill=_GRID, width=_SCALE)
        across, down = frame.place(frame.x_low, tick)
        _write(draw, (across - 6, down + top + _HEAD), charts._label(tick), "rm")
    for tick in charts._ticks(frame.x_low, frame.x_high):
        if frame.x_low <= tick <= frame.x_high:
            across, down = frame.place(tick, frame.y_low)
            _write(draw, (across, down + top + _HEAD + 6), charts._label(tick), "ma")
    for place, (line, colour) in enumerate(zip(known, charts._colours(len(known)), strict=True)):
        if line.low is not None and line.high is not None:
            rim = [*map(at, line.x, line.high), *map(at, line.x[::-1], line.low[::-1])]
            draw.polygon(rim, fill=f"{colour}30")
        draw.line([at(x, y) for x, y in zip(line.x, line.y, strict=True)], fill=colour, width=2 * _SCALE, joint="curve")
        down = top + _HEAD + charts.HEIGHT - 14 + _LINE * place
        draw.rectangle([80 * _SCALE, (down - 4) * _SCALE, 92 * _SCALE, (down + 4) * _SCALE], fill=colour)
        _write(draw, (98, down), line.name, "lm")


def _write(draw: Any, place: tuple[float, float], text: str, anchor: str) -> None:
    from PIL import ImageFont

    draw.text((place[0] * _SCALE, place[1] * _SCALE), text, fill=_INK, font=ImageFont.load_default(11 * _SCALE), anchor=anchor)


def _heights(lines: Sequence[Line]) -> np.ndarray:
    return np.concatenate([part for line in lines for part in (line.y, line.low, line.high) if part is not None])
