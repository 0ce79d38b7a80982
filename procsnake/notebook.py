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
    wheel for this Python."""
    lacks_procgen = "procgen" in extras and not find_spec("procgen")
    if lacks_procgen and sys.version_info >= (3, 13):
        raise RuntimeError(
            "Procgen has no wheel for Python 3.13. On Colab choose Runtime, Change runtime type,"
            " runtime version 2026.07, which has Python 3.12"
        )
    if missing(extras):
        _pip_install(f"procsnake[{extras}]", *_numpy_as_it_is())
    if lacks_procgen:
        _pip_install("--no-deps", *PROCGEN)
    folder = Path.cwd()
    if folder.name != FOLDER:
        folder /= FOLDER
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
    print(f"procsnake is ready. Files go to {folder}")


def missing(extras: str) -> list[str]:
    """Return the distributions that procsnake needs with these extras and that are missing, or
    here in a version that it doesn't take.
    """
    wanted = [{"extra": extra} for extra in extras.split(",")]
    requirements = map(Requirement, metadata.requires("procsnake") or ())
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


def _numpy_as_it_is() -> list[str]:
    return [f"numpy=={metadata.version('numpy')}"] if find_spec("numpy") else []


def _pip_install(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", *arguments], check=True)
    importlib.invalidate_caches()
