"""The tool that draws mistakes."""

from __future__ import annotations

import ast

import pytest

from tests.mutants import changed, places


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a < b", "x = a <= b"),
        ("x = a + b", "x = a - b"),
        ("x = a and b", "x = a or b"),
        ("x = 4", "x = 5"),
        ("if a:\n    pass", "if not a:\n    pass"),
    ],
)
def test_a_place_is_changed_into_its_opposite(before: str, after: str) -> None:
    assert changed(before, 0)[0] == after


def test_annotations_and_truths_are_no_places() -> None:
    assert list(places(ast.parse("x: Literal[3] = True"))) == []
