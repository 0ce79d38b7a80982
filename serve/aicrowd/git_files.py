"""Lists the files of a folder that git would submit, without ignored ones."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

_LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
_NEVER = (".git", "__pycache__")
"""Folders that are left out wherever they are, also without git."""
_OUTPUTS = "outputs"
"""The folder of a run's results, which the competition wants ignored."""


def listed_files(folder: Path) -> list[Path]:
    """Return the paths of all files and links that `git add --all` would take, relative to
    `folder` and sorted.

    A folder that isn't a repository is treated as one, with its .gitignore, because `submit` makes
    it one. Without git on this machine, only outputs/ and caches are left out.
    """
    names = _by_git(folder) if (folder / ".git").exists() else None
    if names is None:
        names = _as_if_by_git(folder)
    if names is None:
        return _walked(folder)
    # A path that ends in a slash is a repository of its own, in whose place git keeps a link only.
    paths = {Path(name) for name in names if name and not name.endswith("/")}
    return sorted(path for path in paths if _counts(path) and os.path.lexists(folder / path))


def virtual_environments(folder: Path, files: list[Path]) -> list[Path]:
    """Return the folders among `files` that are Python environments, relative to `folder`."""
    return sorted(path.parent for path in files if path.name == "pyvenv.cfg" and path.parent.name)


def _by_git(folder: Path) -> list[str] | None:
    """The names that git lists in a repository; None if git refuses."""
    # A stranger's configuration may name a program that git would run to watch the files.
    return _git("-c", "core.fsmonitor=false", "-C", str(folder), *_LIST)


def _as_if_by_git(folder: Path) -> list[str] | None:
    """The names that git would list if the folder were a repository; None without git."""
    with tempfile.TemporaryDirectory() as place:
        if _git("init", "--quiet", "--bare", place) is None:
            return None
        return _git(f"--git-dir={place}", f"--work-tree={folder}", "-C", str(folder), *_LIST)


def _git(*arguments: str) -> list[str] | None:
    # Variables as GIT_DIR are set while one of git's hooks runs, and mean another repository.
    environment = {name: text for name, text in os.environ.items() if not _names_a_place(name)}
    try:
        process = subprocess.run(
            ["git", *arguments], capture_output=True, env=environment, check=False
        )
    except OSError:
        return None
    if process.returncode:
        return None
    return os.fsdecode(process.stdout).split("\0")


def _names_a_place(variable: str) -> bool:
    return variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


def _walked(folder: Path) -> list[Path]:
    paths = []
    for parent, folders, names in os.walk(folder):
        inside = Path(parent).relative_to(folder)
        folders[:] = [name for name in folders if _counts(inside / name)]
        links = [name for name in folders if (folder / inside / name).is_symlink()]
        paths += [inside / name for name in [*names, *links]]
    return sorted(paths)


def _counts(path: Path) -> bool:
    return path.parts[0] != _OUTPUTS and not set(path.parts) & set(_NEVER)
