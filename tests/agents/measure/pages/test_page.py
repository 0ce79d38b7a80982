from __future__ import annotations

import base64
import gzip
import re
from hashlib import sha256

import numpy as np
import pytest

from agents.measure.pages import (
    Chart,
    Intervals,
    Line,
    chart_grid,
    columns,
    fold,
    html_page,
    lead,
    moving_picture,
    note,
    section,
    table,
)
from tests.agents.measure.pages.reading import Page

HOSTILE = "</script><img src=x onerror=alert(1)>&\"quoted\" 'too'"


def chart(*lines: Line, **options) -> Chart:
    return Chart(title="lengths", x_label="decisions", y_label="turns", lines=lines, **options)


def data_of(*charts) -> list[dict]:
    return list(Page(html_page("x", [chart_grid(charts)])).charts.values())


def test_a_page_carries_all_it_needs_and_forbids_the_rest():
    page = Page(
        html_page("x", [chart_grid([chart(Line(name="a", x=np.arange(3.0), y=np.arange(3.0)))])])
    )
    page.assert_needs_nothing_else()
    (policy,) = (attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes)
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    assert allowed == [
        base64.b64encode(sha256(script.encode()).digest()).decode() for script in page.scripts
    ]
    assert "uPlot" in page.scripts[0]


def test_a_page_without_charts_runs_no_script():
    page = Page(html_page("x", [lead("x", "y")]))
    assert not page.scripts
    assert any(
        "script-src 'none'" in (attributes.get("content") or "") for _, attributes in page.tags
    )


def test_hostile_names_are_only_text():
    line = Line(name=HOSTILE, x=np.arange(2.0), y=np.arange(2.0))
    hostile = Chart(title=HOSTILE, x_label=HOSTILE, y_label=HOSTILE, lines=[line])
    rows = Intervals(title=HOSTILE, x_label=HOSTILE, rows=[(HOSTILE, 1.0, 0.0, 2.0)])
    parts = [
        lead(HOSTILE, HOSTILE),
        note(HOSTILE),
        section(HOSTILE, fold(HOSTILE, table([(HOSTILE,)], head=(HOSTILE,)))),
    ]
    page = Page(html_page(HOSTILE, [*parts, chart_grid([hostile, rows])]))
    assert page.text.count(HOSTILE) == 10
    assert "img" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert {data["x_label"] for data in page.charts.values()} == {HOSTILE}


def test_a_chart_says_what_its_axes_are_and_goes_through_its_points():
    (found,) = data_of(
        chart(Line(name="a", x=np.array([0.0, 1.0, 2.0, 4.0]), y=np.array([0.0, 1.0, np.nan, 2.0])))
    )
    assert (found["x_label"], found["y_label"]) == ("decisions", "turns")
    assert (found["lines"][0]["x"], found["lines"][0]["y"]) == ([0.0, 1.0, 4.0], [0.0, 1.0, 2.0])


def test_long_curves_are_thinned_to_their_means():
    x = np.arange(10_000.0)
    y = np.random.default_rng(0).normal(5.0, 1.0, 10_000)
    (found,) = data_of(chart(Line(name="a", x=x, y=y)))
    shown = np.array(found["lines"][0]["y"])
    assert 150 <= len(shown) <= 300
    size = -(-10_000 // 300)
    np.testing.assert_allclose(shown[:3], y[: 3 * size].reshape(3, size).mean(axis=1), rtol=1e-4)


def test_parts_of_a_whole_lie_upon_each_other_and_gaps_count_as_nothing():
    x = np.array([0.0, 1.0])
    lines = [
        Line(name="a", x=x, y=np.array([1.0, 2.0])),
        Line(name="b", x=x, y=np.array([1.0, np.nan])),
    ]
    (found,) = data_of(chart(*lines, stacked=True))
    first, second = found["lines"]
    assert (first["low"], first["high"]) == ([0.0, 0.0], [1.0, 2.0])
    assert (second["low"], second["high"]) == ([1.0, 2.0], [2.0, 2.0])


@pytest.mark.parametrize(
    "nothing",
    [
        chart(),
        chart(Line(name="a", x=np.arange(3.0), y=np.full(3, np.nan))),
        chart(Line(name="a", x=np.zeros(0), y=np.zeros(0)), stacked=True),
        Intervals(title="x", x_label="y", rows=[]),
    ],
)
def test_what_has_no_point_is_left_out(nothing):
    assert chart_grid([nothing]) == ""
    assert (
        section("empty", chart_grid([nothing]))
        == fold("empty", chart_grid([nothing]))
        == columns("")
        == ""
    )


def test_a_game_travels_compressed():
    svg = "<svg>" + "<g/>" * 1000 + "</svg>"
    ((tag, attributes),) = Page(moving_picture(svg, "won")).tags[1:2]
    assert (tag, attributes["alt"]) == ("img", "won")
    assert gzip.decompress(base64.b64decode(attributes["data-svg"])).decode() == svg
    assert len(attributes["data-svg"]) < len(svg) / 10
