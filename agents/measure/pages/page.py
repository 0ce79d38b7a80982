"""Writes HTML pages, each of which is one file that needs nothing else, with one look for all
reports. A page with charts carries uPlot, which draws them.

Its Content-Security-Policy forbids the browser to run any other script and to load anything. So
untrusted names could do no harm even if one weren't escaped."""

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

from agents.measure.pages.chart import Chart, Intervals, Line
from envs.common.palette import SERIES, style_sheet

_STATIC = Path(__file__).parent / "static"
_CHART_SCRIPTS = ("uPlot.iife.min.js", "charts.js")
_CHART_STYLES = ("uPlot.min.css",)
_FILM_SCRIPTS = ("films.js",)
_PLOT = '<div class="plot"'
_PACKED = '<img data-svg="'


def html_page(title: str, sections: Iterable[str]) -> str:
    """Return the whole page. `sections` are HTML."""
    body = "".join(sections)
    charts = _PLOT in body
    films = _PACKED in body
    script_names = [*_CHART_SCRIPTS * charts, *_FILM_SCRIPTS * films]
    style_names = [*_CHART_STYLES * charts, "page.css"]
    scripts = list(map(_static, script_names))
    styles = [style_sheet(), *map(_static, style_names)]
    hashes = " ".join(map(_hash_source, scripts)) or "'none'"
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src blob:;"
        " media-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>" + "".join(f"<style>{style}</style>" for style in styles)
    )
    end = "".join(f"<script>{script}</script>" for script in scripts)
    main = f"<main>{body}</main>"
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body>{_header()}{main}{end}</body>'
        "</html>\n"
    )


def logo() -> str:
    """Return procsnake's logo as SVG."""
    return _static("logo.svg")


def _header() -> str:
    """The bar at the top of each page."""
    return f'<header class="bar">{logo()} procsnake</header>'


def _hash_source(script: str) -> str:
    """The expression by which a Content-Security-Policy allows this script."""
    digest = sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def lead(title: str, summary: str) -> str:
    """Return the page's heading, and a sentence on what the page is about."""
    return f'<h1>{escape(title)}</h1><p class="lead">{escape(summary)}</p>'


def statement(text: str) -> str:
    """Return a part's most important sentence, in larger print."""
    return f'<p class="statement">{escape(text)}</p>'


def note(text: str) -> str:
    """Return a remark in small print; "" for an empty text."""
    if not text:
        return ""
    return f'<p class="note">{escape(text)}</p>'


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


def _film(player: str, caption: str) -> str:
    """A film with its caption. `player` is the HTML element that shows it."""
    return f'<figure class="film">{player}<figcaption>{escape(caption)}</figcaption></figure>'


def table(rows: Iterable[Sequence[str]], *, head: Sequence[str] = (), text_columns: int = 1) -> str:
    """Return a table of plain text. Columns after the first `text_columns` hold figures, which are
    set to the right. A wide table scrolls.
    """
    top = ""
    if head:
        top = f"<thead>{_row(head, text_columns, 'th')}</thead>"
    body = "".join(_row(row, text_columns, "td") for row in rows)
    return f'<div class="scroll" tabindex="0"><table>{top}<tbody>{body}</tbody></table></div>'


def _row(cells: Sequence[str], text_columns: int, tag: str) -> str:
    texts = [f"<{tag}>{escape(cell)}</{tag}>" for cell in cells[:text_columns]]
    figures = [f'<{tag} class="n">{escape(cell)}</{tag}>' for cell in cells[text_columns:]]
    return f"<tr>{''.join(texts + figures)}</tr>"


def chart_grid(charts: Iterable[Chart | Intervals]) -> str:
    """Put charts beside each other where there is room. Charts without a point are left out; if
    none is left, the result is "".
    """
    figures = []
    for chart in charts:
        data = _data(chart)
        if data:
            figures.append(_figure(chart, data))
    if figures:
        return f'<div class="charts">{"".join(figures)}</div>'
    return ""


def _figure(chart: Chart | Intervals, data: dict[str, Any]) -> str:
    label = chart.title
    if isinstance(chart, Chart):
        label = f"{chart.title}, by {chart.x_label}"
    text = escape(json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False))
    return (
        f"<figure><figcaption>{escape(chart.title)}</figcaption>"
        f'{_PLOT} role="img" aria-label="{escape(label)}" data-chart="{text}"></div>'
        "<noscript>The chart needs JavaScript; no script from elsewhere is"
        " loaded.</noscript></figure>"
    )


def _data(chart: Chart | Intervals) -> dict[str, Any]:
    """What `charts.js` draws; empty if the chart has nothing to show."""
    if isinstance(chart, Intervals):
        rows = [[name, *_numbers(np.array(figures), 5)] for name, *figures in chart.rows]
        if rows:
            return {"x_label": chart.x_label, "rows": rows, "colour": SERIES[0]}
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
        "lines": [_line(line, SERIES[k % len(SERIES)]) for k, line in enumerate(lines)],
    }


def _line(line: Line, colour: str) -> dict[str, Any]:
    # x gets two digits more, so that counts of decisions stay apart.
    data = {"name": line.name, "colour": colour, "x": _numbers(line.x, 7), "y": _numbers(line.y, 5)}
    if line.low is not None and line.high is not None:
        data |= {"low": _numbers(line.low, 5), "high": _numbers(line.high, 5)}
    return data


def _numbers(values: np.ndarray, digits: int) -> list[float | None]:
    """The values in JSON's types, rounded to so many digits, with None for what is not a number."""
    return [_rounded(value, digits) for value in values.tolist()]


def _rounded(value: float, digits: int) -> float | None:
    if not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


@cache
def _static(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8").strip()
