"""What the pages say of files is true, and nothing in them is left to fill in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.commands import PAGES, REPOSITORY

ELSEWHERE = {
    "train/a2c.py",
    "tests/train/test_a2c.py",
    "envs/procsnake_env.py",
    "envs/procgen_env_wrapper.py",
}
"""Files of the recipes and of AIcrowd's entries."""


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_files_that_a_page_names_exist(page):
    """Paths in backquotes that begin with one of the project's folders."""
    named = re.findall(
        r"`((?:envs|agents|train|serve|tests|notebooks)/[\w/.-]+\.\w+)`",
        page.read_text(encoding="utf-8"),
    )
    assert [
        path for path in named if path not in ELSEWHERE and not (REPOSITORY / path).exists()
    ] == []


def test_what_the_readme_links_to_and_shows_is_there():
    """mkdocs looks after the links of docs/, but doesn't read the README."""
    links = re.findall(r"\]\(([^)]+)\)", (REPOSITORY / "README.md").read_text(encoding="utf-8"))
    files = [link.partition("#") for link in links if "://" not in link]
    assert len(files) > 30
    assert [path for path, _, _ in files if not (REPOSITORY / path).exists()] == []
    assert [
        (path, place)
        for path, _, place in files
        if place and place not in headings(REPOSITORY / path)
    ] == []


def headings(page: Path) -> set[str]:
    """The names by which links find the headings of a page."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_nothing_is_left_to_fill_in(page):
    """Words such as THREE_ELEVEN stand for a figure that is still to come; names of variables are
    in backquotes.
    """
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert re.findall(r"\b[A-Z]+_[A-Z_]+\b", prose) == []
    assert (
        re.findall(
            r"\b(?:TODO|TBD|FIXME|RESULT|LEGACY_RESULTS)\b", page.read_text(encoding="utf-8")
        )
        == []
    )
