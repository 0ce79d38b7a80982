"""The reports in headless Chromium: on a wide and a narrow screen, light and dark, without anything
but the file.
"""

from __future__ import annotations

import pytest

from agents.measure.tournament.play import play_tournament
from agents.measure.tournament.report import write_report as write_tournament
from agents.measure.tournament.settings import Tournament
from agents.measure.tournament.store import Store
from tests.agents.measure.tournament.made import small
from tests.browser import page_of
from tests.train.runs.report.test_page import a_finished_run, a_run
from train.runs.curves.plot import write_curves
from train.runs.report.page import write_report

pytestmark = pytest.mark.long
LONG_NAME = "a-name-without-any-place-to-break-it-" * 3


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One of each kind of report."""
    folder = tmp_path_factory.mktemp("pages")
    made = a_run(
        folder,
        name=LONG_NAME,
        evaluation={"games": 50, "every_iterations": 10},
        columns={LONG_NAME: 1.0},
    )
    finished = a_finished_run(folder)
    (finished / "progress.csv").write_text((made / "progress.csv").read_text())
    write_curves([made], folder / "curves")
    tournament = small("flood", "greedy", f"{LONG_NAME}=random", "r2=random", seats=4, games=4)
    with Store(folder / "t.db", Tournament) as store:
        games = play_tournament(tournament, store)
    reports = {
        "unfinished": write_report(made),
        "finished": write_report(finished),
        "curves": folder / "curves.html",
    }
    return {
        **reports,
        "tournament": write_tournament(tournament, games, folder / "tournament.html", replays=1),
    }


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", ["unfinished", "finished", "curves", "tournament"])
def test_a_page_fits_the_screen_and_draws_all_that_it_has(chromium, pages, kind, width, colours):
    with page_of(
        chromium, viewport={"width": width, "height": 800}, color_scheme=colours, offline=True
    ) as page:
        page.goto(pages[kind].as_uri())
        page.wait_for_selector(".plot canvas")
        # What comes first is seen without scrolling far: on a wide screen on one and a half, on a
        # telephone on three.
        folded = page.evaluate(
            "document.querySelector('details')?.getBoundingClientRect().top ??"
            " document.body.scrollHeight"
        )
        assert folded < (1200 if width == 1280 else 2400)
        page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
        # The pages forbid what wait_for_function does.
        for missing in (".plot:not(:has(canvas))", ".film img:not([src])"):
            page.locator(missing).first.wait_for(state="detached")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for film in page.locator(".film img").all():
            assert film.evaluate("(film) => film.decode().then(() => film.naturalWidth)") > 100


def test_the_legend_says_the_figures_under_the_cursor_and_keeps_its_colours(chromium, pages):
    with page_of(chromium, viewport={"width": 1280, "height": 800}) as page:
        page.goto(pages["unfinished"].as_uri())
        page.wait_for_selector(".plot canvas")
        over = page.locator(".plot .u-over").first
        box = over.bounding_box()
        page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
        told = page.locator(".plot .u-legend").first.inner_text()
        # The last evaluation won all of its 50 games.
        assert "100.0 % (92.9 % to 100.0 %)" in told
        # The edges of a band are no lines of their own.
        assert "Value" not in told
        swatch = page.locator(".plot .u-legend .u-marker").nth(1)
        assert (
            swatch.evaluate("(mark) => getComputedStyle(mark).backgroundColor")
            == "rgb(19, 154, 136)"
        )
