"""The pictures of the documentation: pages show each of them, none is older than what it shows, and
charts say what the tables say.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
PAGES = (
    PICTURES.parents[1] / "README.md",
    *sorted(PICTURES.parent.glob("*.md")),
    *sorted(PICTURES.parent.glob("lab/*.md")),
)
MAKE = runpy.run_path(str(PICTURES / "make.py"), run_name="make")
OF_A_LOST_RUN = {"game.gif"}
"""Pictures that nothing makes again."""
FEW_BYTES = 4 << 20
SHOWN = re.compile(r"!\[([^\]]*)\]\((?:docs/|\.\./)?pictures/([\w-]+\.\w+)\)")
DRAW = runpy.run_path(str(PICTURES / "draw.py"), run_name="draw")


def shown() -> list[tuple[str, str, str]]:
    """(page, alternative text, file) of each picture on a page."""
    return [
        (page.name, text, name)
        for page in PAGES
        for text, name in SHOWN.findall(page.read_text(encoding="utf-8"))
    ]


def test_pages_show_every_picture_and_no_other():
    files = {path.name for path in PICTURES.iterdir() if path.suffix in {".png", ".svg", ".gif"}}
    assert {name for _, _, name in shown()} == files
    assert files == set(MAKE["SOURCES"]) | OF_A_LOST_RUN
    assert len(files) >= 30


def test_no_picture_is_older_than_what_it_shows():
    """If this fails: make pictures."""
    assert MAKE["stale"]() == []


def test_a_change_of_the_data_makes_its_pictures_stale(monkeypatch, tmp_path):
    data = tmp_path / "curve.csv"
    data.write_text("1")
    names = MAKE["source_hash"].__globals__
    monkeypatch.setitem(names, "REPOSITORY", tmp_path)
    monkeypatch.setitem(names, "SOURCES", {"a.png": ("*.csv",), "b.png": ("missing",)})
    before = MAKE["source_hash"]("a.png")
    data.write_text("2")
    assert MAKE["source_hash"]("a.png") != before
    with pytest.raises(FileNotFoundError, match="missing"):
        MAKE["source_hash"]("b.png")


def test_alternative_texts_say_what_is_seen():
    assert [(page, name) for page, text, name in shown() if len(text.split()) < 4] == []


def test_all_pictures_together_are_small():
    assert sum(path.stat().st_size for path in PICTURES.glob("*.*")) <= FEW_BYTES


def comparison() -> dict:
    return {chart.title: chart for chart in DRAW["comparison"]()}


def ends(chart, share: float = 0.0) -> dict[str, float]:
    """By line: its end, or the mean over the last `share` of the time."""
    return {
        line.name: float(line.y[line.x >= line.x[-1] * (1 - share)].mean()) for line in chart.lines
    }


def test_compare_shows_the_rewards_in_the_table_of_compare():
    found = ends(comparison()["reward per snake"], 0.2)
    page = (PICTURES.parent / "compare.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) ", page, re.MULTILINE)
    # The table counts each episode the same, the picture's mean each moment.
    assert found == {name: pytest.approx(float(reward), rel=0.1) for name, reward in rows}


def test_every_axis_has_a_name_and_every_band_holds_its_line():
    for chart in comparison().values():
        assert chart.x_label
        assert chart.y_label
        for line in chart.lines:
            if line.low is not None:
                assert (line.low <= line.y).all()
                assert (line.y <= line.high).all()
