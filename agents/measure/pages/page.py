"""Pages that are one file and need nothing else, with one look for all reports.

Each page carries uPlot, which draws its charts.

By its Content-Security-Policy a page forbids the browser to run any other script or to load
anything. So names that strangers chose could do no harm even if one were not escaped."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from agents.measure.pages.chart import COLOURS, Chart, Intervals, Line

_STATIC = Path(__file__).parent / "static"
_CHART_SCRIPTS = ("uPlot.iife.min.js", "charts.js")
_FILM_SCRIPTS = ("films.js",)
_PLOT = '<div class="plot"'
_PACKED = '<img data-svg="'
_NONE = "'none'"


def html_page(title: str, sections: Iterable[str]) -> str:
    """Return the whole page. `sections` are HTML."""
    body = "".join(sections)
    charts = _PLOT in body
    films = _PACKED in body
    scripts = [_static(name) for name in (*_CHART_SCRIPTS * charts, *_FILM_SCRIPTS * films)]
    styles = [*([_static("uPlot.min.css")] if charts else []), _static("page.css")]
    allowed = " ".join(
        f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    policy = (
        f"default-src 'none'; script-src {allowed or _NONE}; style-src 'unsafe-inline'; img-src"
        " blob:; media-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        + "".join(f"<style>{style}</style>" for style in styles)
    )
    end = "".join(f"<script>{script}</script>" for script in scripts)
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}{end}</body></html>\n'


def lead(title: str, what: str) -> str:
    """Return the page's heading and a sentence on what the page is about."""
    return f'<h1>{escape(title)}</h1><p class="lead">{escape(what)}</p>'


def note(text: str) -> str:
    """Return a remark in small print."""
    return f'<p class="note">{escape(text)}</p>' if text else ""


def section(title: str, *contents: str) -> str:
    """Return a part that is always visible. Its contents are HTML; if they are empty, so is the
    part.
    """
    if any(contents):
        return f"<section><h2>{escape(title)}</h2>{''.join(contents)}</section>"
    return ""


def fold(title: str, *contents: str) -> str:
    """Return a part that opens when its title is pressed. Its contents are HTML; if they are empty,
    so is the part.
    """
    if any(contents):
        return f"<details><summary>{escape(title)}</summary>{''.join(contents)}</details>"
    return ""


def columns(*parts: str) -> str:
    """Put parts (HTML) beside each other where there is room, otherwise below each other. Empty
    parts are left out.
    """
    if any(parts):
        return f'<div class="columns">{"".join(parts)}</div>'
    return ""


def moving_picture(svg: str, caption: str) -> str:
    """Return an animated SVG, which the page carries compressed: a game of 230 turns takes 40 KB
    instead of 900 KB.
    """
    packed = base64.b64encode(gzip.compress(svg.encode(), mtime=0)).decode()
    return _film(f'{_PACKED}{packed}" alt="{escape(caption)}">', caption)


def film(mp4: bytes, caption: str) -> str:
    """Return a film that the reader starts."""
    source = f"data:video/mp4;base64,{base64.b64encode(mp4).decode()}"
    return _film(
        f'<video controls muted loop src="{source}" title="{escape(caption)}"></video>', caption
    )


def _film(shown: str, caption: str) -> str:
    return f'<figure class="film">{shown}<figcaption>{escape(caption)}</figcaption></figure>'


def table(rows: Iterable[Sequence[str]], *, head: Sequence[str] = (), text_columns: int = 1) -> str:
    """Return a table of plain text. Columns after the first `text_columns` hold figures, set to the
    right.

    Wide tables scroll.
    """
    top = f"<thead>{_row(head, text_columns, 'th')}</thead>" if head else ""
    body = "".join(_row(row, text_columns, "td") for row in rows)
    return f'<div class="scroll" tabindex="0"><table>{top}<tbody>{body}</tbody></table></div>'


def _row(cells: Sequence[str], text_columns: int, tag: str) -> str:
    marked = (
        f'<{tag} class="n">' if place >= text_columns else f"<{tag}>" for place in range(len(cells))
    )
    return f"<tr>{''.join(f'{mark}{escape(cell)}</{tag}>' for mark, cell in zip(marked, cells, strict=True))}</tr>"


def chart_grid(charts: Iterable[Chart | Intervals]) -> str:
    """Put charts beside each other where there is room. Charts without a point are left out;
    without any chart, returns "".
    """
    shown = [_figure(chart, data) for chart in charts if (data := _data(chart))]
    if shown:
        return f'<div class="charts">{"".join(shown)}</div>'
    return ""


def _figure(chart: Chart | Intervals, data: dict[str, Any]) -> str:
    said = escape(f"{chart.title}, by {chart.x_label}" if isinstance(chart, Chart) else chart.title)
    text = escape(json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False))
    return (
        f"<figure><figcaption>{escape(chart.title)}</figcaption>"
        f'{_PLOT} role="img" aria-label="{said}" data-chart="{text}"></div>'
        "<noscript>The chart needs JavaScript; no script from elsewhere is"
        " loaded.</noscript></figure>"
    )


def _data(chart: Chart | Intervals) -> dict[str, Any]:
    """What `charts.js` draws; empty if the chart has nothing to show."""
    if isinstance(chart, Intervals):
        rows = [[name, *_numbers(np.array(figures), 5)] for name, *figures in chart.rows]
        if rows:
            return {"x_label": chart.x_label, "rows": rows, "colour": COLOURS[0]}
        return {}
    lines = chart.drawn()
    if not lines:
        return {}
    return {
        "x_label": chart.x_label,
        "y_label": chart.y_label,
        "from_zero": chart.from_zero or chart.stacked,
        "shares": chart.shares,
        "stacked": chart.stacked,
        "lines": [_line(line, COLOURS[k % len(COLOURS)]) for k, line in enumerate(lines)],
    }


def _line(line: Line, colour: str) -> dict[str, Any]:
    # Two digits more for x: counts of decisions must stay apart.
    data = {"name": line.name, "colour": colour, "x": _numbers(line.x, 7), "y": _numbers(line.y, 5)}
    if line.low is not None and line.high is not None:
        data |= {"low": _numbers(line.low, 5), "high": _numbers(line.high, 5)}
    return data


def _numbers(values: np.ndarray, digits: int) -> list[float | None]:
    """JSON-able; what is no number is None."""
    return [
        float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()
    ]


@cache
def _static(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8").strip()
