"""CI takes the long tests part by part: each file is in one part, and CI has all parts."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
APART = {"tests/clients", "tests/train/engines", "tests/train/sagemaker/test_sdk.py"}
APART |= {"tests/serve/aicrowd/test_legacy.py", "tests/serve/aicrowd/test_ray_settings.py"}
"""`make test-outside` and `make test-engines` have these."""


def array(name: str) -> list[str]:
    """Return the words of an array in `.ci/run`."""
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (words,) = re.findall(rf"^{name}=\((.*)\)$", script, re.MULTILINE)
    return words.split()


def commands(target: str) -> list[list[str]]:
    """Return the words of each call of pytest that a target of the Makefile makes."""
    made = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [shlex.split(line) for line in made.splitlines() if " -m pytest " in line]


def is_in(file: str, folders: set[str]) -> bool:
    return any(file == folder or file.startswith(f"{folder}/") for folder in folders)


@pytest.fixture(scope="module")
def parts() -> dict[str, list[list[str]]]:
    return {name: commands(f"long-{name}") for name in array("long")}


def test_each_file_with_long_tests_is_in_one_part(parts):
    taken: dict[str, list[str]] = {}
    for name, calls in parts.items():
        for words in calls:
            chosen = {word for word in words if word.startswith("tests/") or word == "tests"}
            ignored = {word.removeprefix("--ignore=") for word in words if "--ignore=" in word}
            for path in (ROOT / "tests").rglob("test_*.py"):
                file = str(path.relative_to(ROOT))
                if is_in(file, chosen) and not is_in(file, ignored):
                    taken.setdefault(file, []).append(name)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = str(path.relative_to(ROOT))
        if "mark.long" in path.read_text(encoding="utf-8"):
            expected = 0 if is_in(file, APART) else 1
            where = [name for name in taken.get(file, []) if name != "properties"]
            assert len(where) == expected, f"{file} is in {where}"


def test_what_ci_names_can_be_made():
    for name in array("beside"):
        is_python = name.startswith("python-")
        assert is_python or commands(f"outside-{name}"), name
    assert len(array("long")) == len(set(array("long"))) == len(every_part())


def every_part() -> list[str]:
    """Return the parts that `make test-long` runs."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return [*re.findall(r"^LONG_(\w+) :=", text, re.MULTILINE), "properties"]
