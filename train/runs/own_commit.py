"""Finds the commit of procsnake itself, which cards and runs record."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_HOME = Path(__file__).parents[2]
_SECONDS = 10


def own_commit() -> str:
    """Return the commit from which this procsnake was checked out or installed, or "" if unknown.

    A repository counts only if procsnake is at its top, not if it happens to contain an installed
    procsnake. If pip installed the package from a repository, pip remembers the commit (PEP 610).
    """
    # In a git hook, these variables name the repository for which it runs, which is another one.
    elsewhere = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        if Path(_git("rev-parse", "--show-toplevel", env=elsewhere)).samefile(_HOME):
            _git("ls-files", "--error-unmatch", Path(__file__).name, env=elsewhere)
            return _git("rev-parse", "HEAD", env=elsewhere)
    except (OSError, subprocess.SubprocessError):
        pass
    return _installed_commit()


def _git(*words: str, env: dict[str, str]) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, check=True, env=env
    ).stdout.strip()


def _installed_commit() -> str:
    try:
        installed = distribution("procsnake")
        if not Path(str(installed.locate_file("train"))).samefile(_HOME / "train"):
            return ""
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        return str(origin.get("vcs_info", {}).get("commit_id", ""))
    except (PackageNotFoundError, OSError, ValueError, AttributeError):
        return ""
