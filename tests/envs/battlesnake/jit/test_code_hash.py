"""What changes the hash of code, by which compiled kernels are found: all that could change what
they compute, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envs.battlesnake.jit.code_hash import code_hash, function_hash

SOURCE = '''"""Words."""

LIMIT = 3
"""What it is."""


def f(x: int) -> int:
    """Return more words."""
    # Why.
    if x == LIMIT:
        """Nobody reads this."""
        return 1
    return x + 2.0
'''


def hashed(source: str, tmp_path: Path, versions: str = "1") -> str:
    return code_hash([source.encode(), b"OTHER = 1"], versions, tmp_path / "sources")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"""Words."""', '"""Other words,\nin two lines."""'),
        ('"""Words."""\n', ""),
        ('"""What it is."""', '"""What it was."""'),
        ("Return more words", "Give fewer"),
        ("# Why.", "# Why?\n    # And why not?"),
        ("Nobody", "Somebody"),
        ("x + 2.0", "(\n        x + 2.0\n    )"),
    ],
)
def test_words_and_layout_keep_it(before: str, after: str, tmp_path: Path) -> None:
    assert before in SOURCE
    assert hashed(SOURCE.replace(before, after), tmp_path) == hashed(SOURCE, tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", 'LIMIT = "3"'),
        ("return 1", "return True"),
        ("x + 2.0", "x - 2.0"),
        ("x + 2.0", "x + 2"),
        ("x + 2.0", "x + -2.0"),
        ("x == LIMIT", "x != LIMIT"),
        ("x: int", "x: float"),
        ("x: int", "x: int = 1"),
        ("def f", "@other\ndef f"),
        ("    return x + 2.0", "return_ = x + 2.0"),
    ],
)
def test_code_and_constants_change_it(before: str, after: str, tmp_path: Path) -> None:
    assert before in SOURCE
    assert hashed(SOURCE.replace(before, after), tmp_path) != hashed(SOURCE, tmp_path)


def test_other_versions_and_another_order_of_files_change_it(tmp_path: Path) -> None:
    assert hashed(SOURCE, tmp_path, "2") != hashed(SOURCE, tmp_path, "1")
    files = [b"A = 1", b"B = 2"]
    assert code_hash(files, "1", tmp_path) != code_hash(files[::-1], "1", tmp_path)


def test_files_are_parsed_once_and_a_spoilt_memory_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = hashed(SOURCE, tmp_path)
    (kept,) = (tmp_path / "sources").iterdir()
    kept.write_text("")
    assert hashed(SOURCE, tmp_path) == first
    monkeypatch.setattr("ast.parse", lambda source: pytest.fail("it was parsed again"))
    assert hashed(SOURCE, tmp_path) == first


def test_what_cannot_be_kept_or_parsed_is_hashed_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "sources").write_text("a file in the folder's place")
    assert hashed(SOURCE, tmp_path) == hashed(SOURCE + "\n# A word.\n", tmp_path)
    assert hashed("def half(", tmp_path) != hashed("def hal(", tmp_path)


def defined(source: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(source, names)
    function: Callable[..., Any] = names["f"]
    return function


def test_functions_of_one_name_are_told_apart_by_their_code_and_not_by_their_line() -> None:
    first = function_hash(defined('def f(x):\n    "Words."\n    return x + 1000'))
    assert first == function_hash(defined('\n\ndef f(x):\n    "Others."\n    return x + 1000'))
    assert first != function_hash(defined('def f(x):\n    "Words."\n    return x + 1001'))
    assert first != function_hash(
        defined('def f(x):\n    "Words."\n    return (lambda: x + 1000)()')
    )
    inner = "def f(x):\n    def g():\n        return {}\n    return g()"
    assert function_hash(defined(inner.format(1000))) != function_hash(defined(inner.format(1001)))
