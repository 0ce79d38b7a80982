"""Sets up a host for a notebook, whose first cell calls `set_up`.

Nothing of ours may be importable yet, so this imports only Python's own modules and `packaging`,
which every Jupyter kernel has."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

FOLDER = "workshop"
"""Whatever a notebook writes is in this folder, which git ignores."""
PROCGEN = ("gym3==0.3.3", "procgen-mirror==0.10.7")
"""Procgen asks for NumPy 1 but works beside NumPy 2, so it is installed without dependencies."""


def set_up(extras: str) -> None:
    """Install what procsnake's `extras` ("serve,train") need and isn't here yet, and go into the
    folder `workshop`.

    NumPy stays as it is, so the kernel needs no restart. Raises `RuntimeError` where Procgen has no
    wheel for this Python, where the folder can't be made, and where something is missing although
    pip didn't install procsnake itself."""
    lacks_procgen = "procgen" in extras and not find_spec("procgen")
    if lacks_procgen and sys.version_info >= (3, 13):
        raise RuntimeError(
            "Procgen has no wheel for Python 3.13. On Colab choose Runtime, Change runtime type,"
            " runtime version 2026.07, which has Python 3.12"
        )
    folder = _folder()
    if missing(extras):
        _pip_install(_procsnake_as_it_is(extras), *_numpy_as_it_is())
    if lacks_procgen:
        _pip_install("--no-deps", *PROCGEN)
    os.chdir(folder)
    print(f"procsnake is ready. Files go to {folder}")


def missing(extras: str) -> list[str]:
    """Return the distributions that procsnake needs with these extras and that are missing, or
    here in a version that it doesn't take. That is procsnake itself if pip didn't install it.
    """
    wanted = [{"extra": extra} for extra in extras.split(",")]
    try:
        requirements = map(Requirement, metadata.requires("procsnake") or ())
    except metadata.PackageNotFoundError:
        return ["procsnake"]
    return [
        requirement.name
        for requirement in requirements
        if requirement.marker is None or any(map(requirement.marker.evaluate, wanted))
        if not _is_here(requirement)
    ]


def _is_here(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(metadata.version(requirement.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def _folder() -> Path:
    folder = Path.cwd()
    if folder.name == FOLDER:
        return folder
    folder /= FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise RuntimeError(
            f"The folder {folder} can't be made: {error.strerror}. With %cd go to a folder in which"
            " you may write, and run this cell again"
        ) from error
    return folder


def _procsnake_as_it_is(extras: str) -> str:
    """Name the version that is here, so that pip takes no other procsnake from a package index."""
    try:
        return f"procsnake[{extras}]=={metadata.version('procsnake')}"
    except metadata.PackageNotFoundError as error:
        raise RuntimeError(
            "pip didn't install the procsnake that is here. Install it, and run this cell again:"
            f" %pip install {Path(__file__).parents[1]}"
        ) from error


def _numpy_as_it_is() -> list[str]:
    return [f"numpy=={metadata.version('numpy')}"] if find_spec("numpy") else []


def _pip_install(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", *arguments], check=True)
    importlib.invalidate_caches()
