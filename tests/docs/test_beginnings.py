"""A newcomer reads little before the first command, and nothing of the laboratory."""

from __future__ import annotations

import re

import pytest

from tests.docs.commands import DOCS, REPOSITORY

WITHOUT_COMMANDS = {"design", "glossary", "hosted-notebooks"}
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_a_page_begins_with_what_to_type(page):
    """Below its title, with at most two paragraphs and a heading or picture before it."""
    if page.stem in WITHOUT_COMMANDS:
        return
    before, block, _ = page.read_text(encoding="utf-8").partition("\n```")
    assert block
    prose = re.sub(r"\A---\n.*?\n---\n|!\[[^\]]*\]\([^)]*\)", "", before, flags=re.DOTALL)
    assert len(prose.split()) <= 80


def test_the_readme_is_short_and_shows_pictures():
    assert len(README.split()) <= 1000
    assert len(re.findall(r"!\[[^\]]*\]\(docs/pictures/[\w-]+\.(?:png|gif)\)", README)) >= 3


def test_the_readme_has_no_dates_and_no_commits():
    assert re.findall(r"\b20\d\d-\d\d-\d\d\b|\b[0-9a-f]{7,40}\b", README) == []
