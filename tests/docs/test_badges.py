"""The badges are pictures of ours that nothing updates, so each is held against what it tells."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.envs.battlesnake.test_rules import RECORDED

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BADGES = dict(re.findall(r"!\[([^\]]+)\]\((docs/pictures/badges/\w+\.svg)\)", README))
SETUP = {
    keyword.arg: ast.unparse(keyword.value).strip("'\"")
    for call in ast.walk(ast.parse((REPOSITORY / "setup.py").read_text(encoding="utf-8")))
    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "setup"
    for keyword in call.keywords
}


def test_each_says_what_is_so():
    lowest, beyond = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", SETUP["python_requires"]).groups()
    turns = f"{sum(RECORDED.values()):,}"
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text(encoding="utf-8")
    assert set(BADGES) == {
        f"license: {SETUP['license']}",
        f"python: 3.{lowest} to 3.{int(beyond) - 1}",
        f"official turns reproduced: {turns} of {turns}",
    }


@pytest.mark.parametrize(("told", "path"), BADGES.items())
def test_the_picture_shows_it(told, path):
    svg = (REPOSITORY / path).read_text(encoding="utf-8")
    assert f"<title>{told}</title>" in svg
    assert re.findall(r"<text [^>]*>([^<]+)</text>", svg) == told.split(": ")
