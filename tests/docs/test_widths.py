"""Code blocks are as narrow as the page shows them: 88 characters, as in the site's text column."""

from __future__ import annotations

import re

import pytest

from tests.docs.commands import DOCS, PAGES, REPOSITORY

LIMIT = 88
BLOCK = re.compile(r"^( *)```[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LAB = DOCS / "lab"
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.py"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent != LAB], ids=lambda path: path.name
)
def test_code_fits_the_page(page):
    """The laboratory may quote commands as they were typed."""
    wide = [
        line
        for indent, block in BLOCK.findall(page.read_text(encoding="utf-8"))
        for line in block.splitlines()
        if len(line.removeprefix(indent)) > LIMIT
    ]
    assert wide == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_a_notebook_fits_its_page(notebook):
    lines = notebook.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > LIMIT and not line.startswith("#")] == []
