"""Draws charts with matplotlib, for notebooks, PNG files and the documentation. The first chart
imports matplotlib.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.measure.pages.chart import Chart
from envs.common.palette import ROLES, SERIES
from envs.common.whole_files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 8.0
_HEIGHT = 3.4
_DPI = 140
_MOST_LETTERS = 30
_FEW_POINTS = 12
_INK, _ = ROLES["ink"]
_MUTED, _ = ROLES["muted"]
_LINE, _ = ROLES["line"]


def draw(figure: Figure, charts: Sequence[Chart]) -> None:
    """Draw the charts below each other into an empty matplotlib figure. A chart without a point
    becomes an empty frame.

    In a notebook, call `draw(plt.figure(figsize=(8, 3), layout="constrained"), [chart])`.
    """
    import matplotlib

    all_axes = figure.subplots(len(charts), squeeze=False)[:, 0]
    # Names may hold dollar signs, which matplotlib would read as formulas.
    with matplotlib.rc_context({"text.parse_math": False}):
        for axes, chart in zip(all_axes, charts, strict=True):
            _draw_chart(axes, chart)


def save_charts(path: Path, charts: Sequence[Chart]) -> None:
    """Write the charts below each other as a PNG. Raises `ConfigError` if it can't be written."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT * len(charts)), layout="constrained")
    picture = io.BytesIO()
    draw(figure, charts)
    # Without matplotlib's version in the file, the same charts give the same bytes.
    figure.savefig(picture, format="png", dpi=_DPI, metadata={"Software": None})
    write_whole(path, picture.getvalue())


def _draw_chart(axes: Any, chart: Chart) -> None:
    from matplotlib.ticker import EngFormatter, PercentFormatter

    drawn = chart.drawn()
    opacity = 0.7 if chart.stacked else 0.2
    entries = []
    for k, line in enumerate(drawn):
        colour = SERIES[k % len(SERIES)]
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=opacity, linewidth=0)
        top = line.high if chart.stacked else line.y
        # A line of few points may be a single point, which only a marker shows.
        marker = "o" if len(line.x) <= _FEW_POINTS else None
        entries += axes.plot(line.x, top, color=colour, linewidth=1.6, marker=marker, markersize=3)
    title = _capitalised(chart.title)
    axes.set_title(title, loc="left", color=_INK, fontsize=11, fontweight="bold")
    axes.set_xlabel(chart.x_label, color=_MUTED)
    axes.set_ylabel(chart.y_label, color=_MUTED)
    axes.tick_params(color=_LINE, labelcolor=_MUTED)
    if drawn and max(line.x.max() for line in drawn) >= 1e4:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if chart.shares:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_ylim(0.0, 1.02)
    elif (chart.from_zero or chart.stacked) and axes.dataLim.ymin >= 0.0:
        axes.set_ylim(bottom=0.0)
    axes.grid(color=_LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_LINE)
    if len(drawn) > 1:
        axes.legend(
            entries,
            [_short(line.name) for line in drawn],
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            frameon=False,
            labelcolor=_INK,
        )


def _capitalised(title: str) -> str:
    return title[:1].upper() + title[1:]


def _short(name: str) -> str:
    """The end of a name, so that the legend leaves room for the lines."""
    if len(name) <= _MOST_LETTERS:
        return name
    return f"…{name[1 - _MOST_LETTERS :]}"
