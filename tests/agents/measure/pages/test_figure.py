from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from agents.measure.pages import Chart, Line
from agents.measure.pages.figure import draw, save_charts
from envs.common.errors import ConfigError
from envs.common.palette import SERIES


def chart(*names: str, **options) -> Chart:
    x = np.linspace(0, 2e6, 5)
    lines = [
        Line(name=name, x=x, y=x / 1e6 + k, low=x / 1e6 + k - 0.5, high=x / 1e6 + k + 0.5)
        for k, name in enumerate(names)
    ]
    return Chart(title="lengths", x_label="decisions", y_label="turns", lines=lines, **options)


def drawn(shown: Chart) -> Figure:
    figure = Figure(layout="constrained")
    draw(figure, [shown])
    figure.draw_without_rendering()
    return figure


def test_lines_bands_axes_and_legend_are_those_of_the_chart():
    (axes,) = drawn(chart("a", "b")).axes
    assert (axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()) == (
        "Lengths",
        "decisions",
        "turns",
    )
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [1.0, 1.5, 2.0, 2.5, 3.0])
    edges = axes.collections[1].get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == (0.5, 3.5)
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert [line.get_color() for line in legend.get_lines()] == list(SERIES[:2])


@pytest.mark.parametrize("name", ["$\\frac", "_hidden", "", "a" * 60])
def test_any_name_can_be_drawn(name):
    (axes,) = drawn(chart(name, "b")).axes
    first, second = (text.get_text() for text in axes.get_legend().get_texts())
    assert first == name or (len(first) == 30 and name.endswith(first[1:]))
    assert second == "b"


def test_parts_of_a_whole_fill_the_frame():
    x = np.arange(3.0)
    lines = [Line(name="a", x=x, y=np.full(3, 0.25)), Line(name="b", x=x, y=np.full(3, 0.75))]
    shares = Chart(title="t", x_label="x", y_label="y", lines=lines, stacked=True, shares=True)
    (axes,) = drawn(shares).axes
    np.testing.assert_allclose(axes.lines[1].get_ydata(), 1.0)


@pytest.mark.parametrize(
    "values", [[-1.0, -0.6, -0.5], [-1.0, 0.2, 3.0], [0.2, 1.0, 3.0], [0.0, 0.0, 0.0]]
)
@pytest.mark.parametrize("spread", [None, 0.5])
def test_an_axis_from_zero_shows_all_values_the_right_way_up(values, spread):
    y = np.array(values)
    band = {} if spread is None else {"low": y - spread, "high": y + spread}
    line = Line(name="a", x=np.arange(3.0), y=y, **band)
    (axes,) = drawn(Chart(title="t", x_label="x", y_label="y", lines=[line], from_zero=True)).axes
    bottom, top = axes.get_ylim()
    lowest = min(band.get("low", y))
    assert top > max(band.get("high", y))
    assert bottom == 0 if lowest >= 0 else bottom < lowest


def test_charts_are_saved_below_each_other_or_not_at_all(tmp_path):
    save_charts(tmp_path / "one.png", [chart("a")])
    save_charts(tmp_path / "two.png", [chart("a"), chart()])
    with Image.open(tmp_path / "one.png") as one, Image.open(tmp_path / "two.png") as two:
        assert two.size == (one.width, 2 * one.height)
    with pytest.raises(ConfigError, match="can't be written"):
        save_charts(tmp_path / "nowhere" / "x.png", [chart("a")])


def test_matplotlib_is_imported_with_the_first_picture_only():
    code = (
        "import sys, agents.measure.pages.figure, procsnake;"
        " import train.runs.curves.plot, train.runs.report.page;"
        " print('matplotlib' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )
