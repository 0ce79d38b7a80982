"""Takes the pictures of the viewer and of an analysis in a real browser: `python
docs/pictures/screens.py` (needs Chromium).

Both games are played here, with fixed seeds, so the pictures follow the shipped champion and the
viewer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from tests.browser import launched

HERE = Path(__file__).parent
PROCSNAKE = [sys.executable, "-m", "procsnake"]
SIZE = {"width": 1000, "height": 740}
GAME_TURN = 19
"""A turn of the four-snake game on which two rivals are about to meet."""


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


def save(page: Any, path: Path) -> None:
    """Write a screenshot with 256 colours, which a page of few colours doesn't miss."""
    page.screenshot(path=path)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    """Take both pictures."""
    with launched() as browser, tempfile.TemporaryDirectory() as folder:
        page = browser.new_page(viewport=SIZE, device_scale_factor=1.5, color_scheme="light")
        match = [
            "match",
            "champion-standard",
            "flood",
            "flood",
            "flood",
            "--seed",
            "1",
            "--delay",
            "0.01",
        ]
        with page_address(*match, "--browser") as address:
            page.goto(address)
            page.locator("#about .won").wait_for()
            page.locator("#slider").fill(str(GAME_TURN))
            page.locator("#slider").blur()
            page.wait_for_timeout(500)
            save(page, HERE / "viewer.png")

        game = str(Path(folder) / "lost.jsonl")
        play = ["play", "champion-standard", "flood", "--seed", "5", "--record", game]
        subprocess.run([*PROCSNAKE, *play], check=True, stdout=subprocess.DEVNULL)
        with page_address("analyse", game, "--snake", "flood", "--browser") as address:
            page.goto(address)
            page.locator("#verdicts button").first.wait_for(timeout=300_000)
            page.locator("#waiting").wait_for(state="hidden", timeout=300_000)
            page.locator("#verdicts button").first.click()
            page.wait_for_timeout(500)
            save(page, HERE / "analysis.png")


if __name__ == "__main__":
    main()
