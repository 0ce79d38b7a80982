"""Takes the pictures of pages in a real browser (needs Chromium).

Games are played here, with fixed seeds, so the pictures follow the shipped champion and the viewer.
The run of the report is trained here for three minutes, or is the one that PICTURES_RUN names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from tests.browser import launched

HERE = Path(__file__).parent
DATA = HERE / "data"
PROCSNAKE = [sys.executable, "-m", "procsnake"]
SIZE = {"width": 1000, "height": 740}
PHONE = {"width": 390, "height": 844}
GAME_TURN = 19
"""A turn of the four-snake game on which two rivals are about to meet."""
PATIENCE_MS = 300_000


@contextmanager
def page_address(*arguments: str) -> Iterator[str]:
    """Run a command that shows a page until it is stopped, and yield the page's address."""
    environment = os.environ | {"BROWSER": "true"}
    show = subprocess.Popen(
        [*PROCSNAKE, *arguments], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert show.stdout is not None
    try:
        yield next(match[0] for line in show.stdout if (match := re.search(r"http://\S+", line)))
    finally:
        show.terminate()
        show.wait()


def run(*arguments: str) -> None:
    """Run a command of procsnake to its end."""
    subprocess.run([*PROCSNAKE, *arguments], check=True, stdout=subprocess.DEVNULL)


def save(page: Any, name: str) -> None:
    """Write a screenshot with 256 colours, which a page of few colours doesn't miss."""
    path = HERE / name
    page.screenshot(path=path)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"made: {name}", flush=True)


Opener = Callable[..., Any]
"""Opens a page: takes an address and `Browser.new_page`'s options."""


def viewer(open_page: Opener, folder: Path) -> None:
    """A game of four in the viewer, with the champion's thoughts, and the list of games."""
    match = ["match", "champion-standard", "flood", "flood", "flood", "--seed", "1"]
    with page_address(*match, "--delay", "0.01", "--browser") as address:
        for name, options in (
            ("viewer.png", {}),
            ("viewer-dark.png", {"color_scheme": "dark"}),
            ("viewer-phone.png", {"viewport": PHONE}),
        ):
            page = open_page(address, **options)
            page.locator("#about .won").wait_for(timeout=PATIENCE_MS)
            page.locator("#slider").fill(str(GAME_TURN))
            page.locator("#slider").blur()
            page.wait_for_timeout(500)
            save(page, name)
        page = open_page(re.sub(r"(/watch).*", r"\1", address))
        page.wait_for_timeout(1500)
        save(page, "games.png")


def analysis(open_page: Opener, folder: Path) -> None:
    """The analysis of a lost duel, at the turn that lost it."""
    game = str(folder / "lost.jsonl")
    run("match", "champion-standard", "flood", "--seed", "5", "--record", game)
    with page_address("analyse", game, "--snake", "flood", "--browser") as address:
        for name, colours in (("analysis.png", "light"), ("analysis-dark.png", "dark")):
            page = open_page(address, color_scheme=colours)
            page.locator("#verdicts button").first.wait_for(timeout=PATIENCE_MS)
            page.locator("#waiting").wait_for(state="hidden", timeout=PATIENCE_MS)
            page.locator("#verdicts button").first.click()
            page.wait_for_timeout(500)
            save(page, name)


def play(open_page: Opener, folder: Path) -> None:
    """A game played by hand after a few moves."""
    with page_address("play", "--against", "champion-standard", "flood", "--browser") as address:
        page = open_page(address)
        page.wait_for_timeout(2000)
        for key in ("ArrowUp", "ArrowRight", "ArrowUp"):
            page.keyboard.press(key)
            page.wait_for_timeout(1200)
        save(page, "play.png")


def reports(open_page: Opener, folder: Path) -> None:
    """The report of a run, a tournament's page, and a sequential test's."""
    trained = os.environ.get("PICTURES_RUN")
    if trained is None:
        run("train", "battlesnake-ppo", "--runs", str(folder / "runs"))
        trained = str(next((folder / "runs").glob("battlesnake-ppo-*")))
        run("evaluate", trained, "--games", "100")
    # The page names the run's folder as it was typed.
    home = Path(trained).parents[1]
    subprocess.run([*PROCSNAKE, "report", f"runs/{Path(trained).name}"], check=True, cwd=home)
    for kind in ("tournament", "sprt"):
        store = folder / f"{kind}.db"
        store.write_bytes((DATA / store.name).read_bytes())
        run(kind, "--store", str(store), "--report", str(folder / f"{kind}.html"))
    shots = [
        ("report.png", Path(trained) / "report.html", {}),
        ("report-dark.png", Path(trained) / "report.html", {"color_scheme": "dark"}),
        ("report-phone.png", Path(trained) / "report.html", {"viewport": PHONE}),
        ("tournament.png", folder / "tournament.html", {}),
        ("sprt.png", folder / "sprt.html", {}),
    ]
    for name, path, options in shots:
        page = open_page(path.resolve().as_uri(), **options)
        page.wait_for_timeout(1000)
        save(page, name)


_TAKES: dict[Callable[[Opener, Path], None], tuple[str, ...]] = {
    viewer: ("viewer.png", "viewer-dark.png", "viewer-phone.png", "games.png"),
    analysis: ("analysis.png", "analysis-dark.png"),
    play: ("play.png",),
    reports: ("report.png", "report-dark.png", "report-phone.png", "tournament.png", "sprt.png"),
}


def take(names: Sequence[str]) -> list[str]:
    """Take the pictures `names` and those that show the same pages, and return all of them."""
    wanted = [take for take, taken in _TAKES.items() if set(taken) & set(names)]
    if not wanted:
        return []
    with launched() as browser, tempfile.TemporaryDirectory() as folder:

        def open_page(address: str, **options: Any) -> Any:
            look = {"viewport": SIZE, "device_scale_factor": 1.5, "color_scheme": "light"}
            page = browser.new_page(**{**look, **options})
            page.goto(address)
            return page

        for one in wanted:
            one(open_page, Path(folder))
    return [name for one in wanted for name in _TAKES[one]]
