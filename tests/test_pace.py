"""`make test-fast` leaves out what tests/pace.py lists, and still tries every room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pace import SLOW, SLOW_FIXTURES

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[1]
ROOMS = ["agents", "docs", "envs", "serve", "train"]
FILES = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("test_*.py"))]


def test_every_entry_names_a_file():
    assert [
        entry
        for entry in SLOW
        if not any(name.startswith(entry.partition("::")[0]) for name in FILES)
    ] == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_quick_tests(room):
    assert (
        len(
            [
                name
                for name in FILES
                if name.startswith(f"tests/{room}/") and not name.startswith(SLOW)
            ]
        )
        >= 5
    )


def test_a_test_is_slow_by_its_file_or_by_what_it_starts(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    fixture = sorted(SLOW_FIXTURES)[0]
    text = f"import pytest\n\n@pytest.fixture\ndef {fixture}():\n    pass\n\n"
    text += f"def test_one({fixture}):\n    pass\n\ndef test_two():\n    pass\n"
    (pytester.path / "test_other.py").write_text(text)
    (pytester.path / SLOW[-1]).parent.mkdir(parents=True, exist_ok=True)
    (pytester.path / SLOW[-1]).write_text("def test_three():\n    pass\n")
    pytester.makeini("[pytest]\nmarkers =\n    slow: slow\n")
    done = pytester.runpytest_inprocess("-p", "tests.pace", "-m", "not slow", "-v")
    done.assert_outcomes(passed=1, deselected=1)
    done.stdout.fnmatch_lines(["*test_two PASSED*"])
