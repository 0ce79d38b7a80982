"""Small charts as SVG text: lines with bands, and stacked areas. No library, no script, nothing to load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH, HEIGHT = 560, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 14, 12, 42
_COLOURS = ("#2f6fde", "#d9542b", "#2a9d5c", "#9a4fd0", "#c69214", "#1399a6", "#d63c83", "#7b7f87")
_MOST_POINTS = 300
_MOST_DOTS = 40
_TICKS = 5


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve; points whose value is no number are left out. `low` and `high`: a band around it."""

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def line_chart(lines: Sequence[Line], *, x_label: str = "", zero: bool = False) -> str:
    """The lines in one frame, with a legend if there are several; `zero`: the y axis begins at 0. Empty without points."""
    thinned = [_thin(_without_gaps(line)) for line in lines if np.isfinite(line.y).any()]
    if not thinned:
        return ""
    heights = np.concatenate([part for line in thinned for part in (line.y, line.low, line.high) if part is not None])
    frame = _Frame(np.concatenate([line.x for line in thinned]), np.append(heights, 0.0) if zero else heights)
    body = []
    for line, colour in zip(thinned, _colours(len(thinned)), strict=True):
        if line.low is not None and line.high is not None:
            body.append(f'<polygon points="{frame.between(line.x, line.low, line.high)}" fill="{colour}" opacity="0.18"/>')
        body.append(
            f'<polyline points="{frame.points(line.x, line.y)}" fill="none" stroke="{colour}" stroke-width="1.7">'
            f"<title>{escape(line.name)}</title></polyline>"
        )
        if len(line.x) <= _MOST_DOTS:
            body += [frame.dot(x, y, colour) for x, y in zip(line.x, line.y, strict=True)]
    return _svg(frame, body, [line.name for line in thinned] if len(thinned) > 1 else [], x_label)


def area_chart(lines: Sequence[Line], *, x_label: str = "") -> str:
    """The lines stacked upon each other; gaps count as 0. All must have the same x. Empty without points."""
    thinned = [_thin(line) for line in lines]
    if not thinned or not len(thinned[0].x):
        return ""
    x, floor, body = thinned[0].x, np.zeros(len(thinned[0].x)), []
    layers = []
    for line in thinned:
        top = floor + np.nan_to_num(line.y)
        layers.append((line, floor, top))
        floor = top
    frame = _Frame(x, np.append(floor, 0.0))
    for (line, low, high), colour in zip(layers, _colours(len(layers)), strict=True):
        shape = f'<polygon points="{frame.between(x, low, high)}" fill="{colour}" opacity="0.75">'
        body.append(f"{shape}<title>{escape(line.name)}</title></polygon>")
    return _svg(frame, body, [line.name for line in thinned], x_label)


class _Frame:
    """From values to places in the picture."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x_low, self.x_high = _range(x)
        y_low, y_high = _range(y)
        self.y_ticks = _ticks(y_low, y_high)
        self.y_low, self.y_high = min(y_low, self.y_ticks[0]), max(y_high, self.y_ticks[-1])

    def place(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x_low) / (self.x_high - self.x_low)
        up = (y - self.y_low) / (self.y_high - self.y_low)
        return _LEFT + across * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM)

    def points(self, xs: np.ndarray, ys: np.ndarray) -> str:
        return " ".join("{:.1f},{:.1f}".format(*self.place(x, y)) for x, y in zip(xs, ys, strict=True))

    def between(self, xs: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
        return self.points(np.concatenate([xs, xs[::-1]]), np.concatenate([high, low[::-1]]))

    def dot(self, x: float, y: float, colour: str) -> str:
        cx, cy = self.place(x, y)
        return f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="2.4" fill="{colour}"><title>{y:.4g}</title></circle>'

    def axes(self, x_label: str) -> list[str]:
        parts = []
        for tick in self.y_ticks:
            _, y = self.place(self.x_low, tick)
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_label(tick)}</text>')
        for tick in _ticks(self.x_low, self.x_high):
            if self.x_low <= tick <= self.x_high:
                x, _ = self.place(tick, self.y_low)
                parts.append(f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 17}" text-anchor="middle">{_label(tick)}</text>')
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>')
        return parts


def _svg(frame: _Frame, body: list[str], names: list[str], x_label: str) -> str:
    legend = "".join(
        f'<span class="key"><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in zip(names, _colours(len(names)), strict=True)
    )
    shapes = "".join([*frame.axes(x_label), *body])
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{shapes}</svg><div class="legend">{legend}</div>'


def _colours(count: int) -> list[str]:
    return [_COLOURS[k % len(_COLOURS)] for k in range(count)]


def _without_gaps(line: Line) -> Line:
    known = np.isfinite(line.y)
    parts = {name: getattr(line, name) for name in ("x", "y", "low", "high")}
    return Line(name=line.name, **{name: None if part is None else part[known] for name, part in parts.items()})


def _thin(line: Line) -> Line:
    """Means over neighbouring points, so that no chart has more than a few hundred."""
    size = -(-len(line.x) // _MOST_POINTS)
    if size <= 1:
        return line

    def means(values: np.ndarray) -> np.ndarray:
        padded = np.append(values, np.full(-len(values) % size, np.nan)).reshape(-1, size)
        known = np.isfinite(padded)
        return np.where(known, padded, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)

    parts = {name: getattr(line, name) for name in ("x", "y", "low", "high")}
    return Line(name=line.name, **{name: None if part is None else means(part) for name, part in parts.items()})


def _range(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return low, high
    spread = abs(low) / 2 or 0.5
    return low - spread, high + spread


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers about the range: the first at or below `low`, the last at or above `high`."""
    raw = (high - low) / _TICKS
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw)
    return [k * step for k in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]


def _label(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.4g}{unit}"
    return f"{value:.4g}" if abs(value) > 1e-12 else "0"
