"""The site as readers get it: it builds strictly, every link leads somewhere, the reference is
complete, a phone shows it.
"""

from __future__ import annotations

import functools
import html
import http.server
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

import procsnake
from tests.browser import page_of
from tests.http_server import QuietHandler, serving
from train.config import list_experiments

REPOSITORY = Path(__file__).parents[2]
BASE = "http://site/"
DARK = (1280, "dark")
LIGHT = (1280, "light")
PHONE = (390, "light")
WORLDS = ("envs", "envs.battlesnake", "envs.battlesnake.recording", "envs.procgen")
PUBLIC = (*WORLDS, "agents", "agents.bundle", "agents.measure.evaluation")
"""Packages whose `__all__` says what others may use."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        *shlex.split("-m mkdocs build --strict --quiet --site-dir"),
        str(folder),
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@dataclass
class Page(HTMLParser):
    """The places of an HTML page that a link can name, its links, and its text."""

    places: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.places |= {given[name] or "" for name in ("id", "name") if name in given}
        self.links += [given[name] or "" for name in ("href", "src") if name in given]


@pytest.fixture(scope="module")
def pages(site):
    """All pages, by their address on the site."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[address(site, path)] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    return found


def address(site: Path, path: Path) -> str:
    return urljoin(BASE, path.relative_to(site).as_posix().removesuffix("index.html"))


def text_of(site: Path, name: str) -> str:
    return html.unescape(
        re.sub(r"<[^>]+>", "", (site / name / "index.html").read_text(encoding="utf-8"))
    )


def test_the_start_shows_a_game(site):
    assert "A game: a snake" in (site / "index.html").read_text(encoding="utf-8")


def test_every_link_leads_somewhere(site, pages):
    dead = []
    for here, page in pages.items():
        for link in page.links:
            target, place = urldefrag(urljoin(here, link))
            if urlsplit(target).netloc != "site":
                continue
            there = pages.get(target)
            if there is None and not (site / unquote(urlsplit(target).path).lstrip("/")).is_file():
                dead.append(f"{here}: {link}")
            elif there is not None and place and unquote(place) not in there.places:
                dead.append(f"{here}: {link}: there is no such place")
    assert dead == []
    assert sum(len(page.links) for page in pages.values()) > 1000


def test_every_option_that_help_tells_of_is_told(site, capsys):
    told = text_of(site, "commands")
    for typed in (
        "train",
        "tune",
        "tune-search games",
        "launch sagemaker",
        "launch slurm",
        "arena fetch",
        "serve",
    ):
        with pytest.raises(SystemExit):
            procsnake.main([*typed.split(), "--help"])
        options = set(
            re.findall(r"^  (?:-h, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE)
        ) - {"--help"}
        section = told.split(f"\nprocsnake {typed}¶")[1].partition("¶")[0]
        assert len(options) > 2
        assert [option for option in options if option not in section] == [], typed


def test_every_command_is_told_with_its_examples(site, capsys):
    told = text_of(site, "commands")
    with pytest.raises(SystemExit):
        procsnake.main(["--help"])
    commands = re.findall(r"^  ([a-z-]+)  ", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) > 20
    for command in commands:
        section = told.split(f"\nprocsnake {command}¶")[1].partition("¶")[0]
        assert "Examples" in section, command
        assert len(re.findall(r"(?:^|\()procsnake [a-z-]+", section, re.MULTILINE)) > 1, command


def test_every_key_is_told_with_its_default(site, capsys):
    told = text_of(site, "settings")
    for name in list_experiments():
        assert procsnake.main(["train", name, "--help-keys", "--json"]) == 0
        for key in json.loads(capsys.readouterr().out):
            # Worlds and networks have options of the same name, with defaults of their own.
            rows = dict(re.findall(rf"^{re.escape(key['key'])}\n(.*)\n(.+)$", told, re.MULTILINE))
            assert (
                "required"
                if key["default"] == "required"
                else json.dumps(key["default"], ensure_ascii=False)
            ) in rows


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_in_the_api(package, pages):
    places = set().union(*(page.places for address, page in pages.items() if "/api/" in address))
    module = importlib.import_module(package)
    undocumented = {
        "NOBODY",
        "EXTRAS",
        "UNKNOWN_CAUSE",
        "GAMES",
        "ProcsnakeError",
        "Agent",
        "Decision",
        "BundleError",
        "Card",
    }
    missing = [
        name
        for name in module.__all__
        if f"{package}.{name}" not in places and name not in undocumented
    ]
    assert missing == []


def test_tables_in_docstrings_are_tables(site):
    """They are drawn with rows of = in the source."""
    worlds = (site / "api" / "worlds" / "index.html").read_text(encoding="utf-8")
    assert re.search(
        r"<td><code>final_observations</code></td>\s*<td>space dtype \(R, …\)</td>", worlds
    )
    assert re.search(r"<th><code>kind</code></th>\s*<th>meaning</th>", worlds)
    assert "====" not in worlds


def test_it_says_nothing_of_the_machine_that_built_it(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert str(REPOSITORY) not in text, path
        assert sys.prefix not in text, path


SEARCHES = {
    "install": "pythons/",
    "cite": "cite/",
    "own network": "your-own-parts/",
    "timeout": "arena/",
}
"""What newcomers search for, and the page that answers it."""


@pytest.mark.parametrize(("words", "page"), SEARCHES.items(), ids=SEARCHES)
def test_the_index_has_the_words_in_a_title_of_the_page_that_answers(site, words, page):
    """A title weighs a thousand times as much as text, a shorter one more than a longer one."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    titled = [entry for entry in index["docs"] if starts(words, entry["title"])]
    best = max(titled, key=lambda entry: (entry.get("boost", 1), -len(entry["title"])))
    assert best["location"].startswith(page)


def starts(words: str, title: str) -> bool:
    """Whether each word begins a word of the title, as the site's search takes it."""
    said = re.findall(r"\w+", title.lower())
    return all(any(one.startswith(word) for one in said) for word in words.split())


@pytest.fixture(scope="module")
def url(site) -> Iterator[str]:
    class Handler(QuietHandler, http.server.SimpleHTTPRequestHandler):
        """Sends files."""

    with serving(functools.partial(Handler, directory=str(site))) as address:
        yield f"{address}/"


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [LIGHT, DARK, PHONE], ids=["light", "dark", "phone"])
def test_no_page_is_wider_than_the_screen_nor_pale(chromium, url, pages, width, scheme):
    """Nor does a script of any page fail (`page_of`). Tables and code that are wider scroll by
    themselves.
    """
    shown = {"width": width, "height": 844}
    with page_of(chromium, viewport=shown, color_scheme=scheme) as browser:
        for address in pages:
            if width > 390 and "api/" not in address and address != BASE:
                continue  # one page of hand-written text, and what is generated
            browser.goto(urljoin(url, address.removeprefix(BASE)), wait_until="domcontentloaded")
            assert browser.evaluate("document.documentElement.scrollWidth") <= width, address
            assert browser.locator("h1").first.is_visible(), address
            text, ground = browser.evaluate(COLORS)
            assert (light(text) > light(ground)) == (scheme == "dark"), address
            assert contrast(text, ground) >= 4.5, address


@pytest.mark.long
@pytest.mark.parametrize(("words", "page"), SEARCHES.items(), ids=SEARCHES)
def test_the_first_answer_of_a_search_is_the_right_page(chromium, url, words, page):
    with page_of(chromium, viewport={"width": 1280, "height": 844}) as browser:
        browser.goto(urljoin(url, f"?q={words}"), wait_until="domcontentloaded")
        first = browser.locator(".md-search-result__item a").first
        first.wait_for(state="attached")
        assert urlsplit(urljoin(url, first.get_attribute("href"))).path == f"/{page}"


COLORS = """() => {
    const style = name => getComputedStyle(document.querySelector(name));
    return [style(".md-typeset").color, style("body").backgroundColor];
}"""


def light(color: str) -> float:
    """Relative luminance of an sRGB colour, 0..1 (WCAG 2.2)."""
    parts = [float(part) / 255 for part in re.findall(r"[\d.]+", color)[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG's ratio, 1..21; text should have 4.5."""
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)
