"""A card's commit is procsnake's own, or none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]
ASK = "from train.runs.own_commit import own_commit; print(own_commit())"


def git(folder, *words):
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(
        ["git", "-C", folder, *who, *words], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def strangers_project(tmp_path):
    """A repository of somebody else with a commit in it."""
    git(tmp_path.parent, "init", "-q", str(tmp_path))
    (tmp_path / "snake.py").write_text("")
    git(tmp_path, "add", "snake.py")
    git(tmp_path, "commit", "-qm", "mine")
    return tmp_path


def copied(folder):
    """The file that matters here, as pip would lay it out."""
    runs = folder / "train" / "runs"
    runs.mkdir(parents=True)
    (runs.parent / "__init__.py").touch()
    (runs / "__init__.py").touch()
    shutil.copy(HOME / "train" / "runs" / "own_commit.py", runs)
    return folder


def told(folder, **environment):
    return subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_of_a_checkout_it_is_the_checkouts(strangers_project):
    head = git(HOME, "rev-parse", "HEAD")
    assert told(HOME) == head
    assert told(HOME, GIT_DIR=str(strangers_project / ".git")) == head


@pytest.mark.parametrize("is_tracked", [False, True])
def test_a_repository_around_an_installed_procsnake_does_not_count(strangers_project, is_tracked):
    packages = copied(strangers_project / ".venv" / "site-packages")
    if is_tracked:
        git(strangers_project, "add", ".")
        git(strangers_project, "commit", "-qm", "vendored")
    assert told(packages) == ""


def test_a_copy_at_the_top_that_is_not_tracked_does_not_count(strangers_project):
    assert told(copied(strangers_project)) == ""


def test_what_pip_installed_from_a_repository_knows_its_commit(tmp_path):
    packages = copied(tmp_path)
    about = packages / "procsnake-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: procsnake\nVersion: 0.1.0\n")
    where = {
        "url": "https://example.org/procsnake",
        "vcs_info": {"vcs": "git", "commit_id": "a" * 40},
    }
    (about / "direct_url.json").write_text(json.dumps(where))
    assert told(packages) == "a" * 40
