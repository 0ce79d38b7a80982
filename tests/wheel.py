"""procsnake as its wheel installs it, for tests that want to do without the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = (
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "procsnake_packages.py",
    "envs",
    "agents",
    "train",
    "serve",
    "procsnake",
)

_EACH = """
import contextlib, io, json, sys
import procsnake, envs, agents, train, serve
codes = []
for words in json.loads(sys.argv[1]):
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = procsnake.main(words)
    except SystemExit as ended:
        code = ended.code
    codes.append([" ".join(words), code, output.getvalue()[-2000:]])
print()
print(json.dumps([[module.__file__ for module in (procsnake, envs, agents, train, serve)], codes]))
"""


def built_wheel(folder: Path) -> Path:
    """Build the wheel in `folder`, and return its file."""
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    build = "from setuptools import build_meta; print(build_meta.build_wheel('..'))"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / done.stdout.split()[-1]


def unpacked_wheel(folder: Path) -> Path:
    """Build the wheel in `folder`, and return the folder with what it would install."""
    shutil.unpack_archive(built_wheel(folder), folder / "installed", "zip")
    return folder / "installed"


def run_each(
    python: str | Path,
    commands: Sequence[Sequence[str]],
    *,
    cwd: Path,
    environment: Mapping[str, str] = os.environ,
) -> tuple[list[str], list[list]]:
    """Run commands one after another in one process of `python`.

    Returns the files of procsnake's five modules and, by command, its words, its exit code and the
    end of its output."""
    done = subprocess.run(
        [python, "-c", _EACH, json.dumps(commands)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    places, codes = json.loads(done.stdout.splitlines()[-1])
    return places, codes
