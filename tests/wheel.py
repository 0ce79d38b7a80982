"""procsnake as its wheel installs it, for tests that want to do without the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "procsnake.py", "envs", "agents", "train", "serve")


def unpacked_wheel(folder: Path) -> Path:
    """Build the wheel in `folder`, and return the folder with what it would install."""
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    build = "from setuptools import build_meta; print(build_meta.build_wheel('..'))"
    done = subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    shutil.unpack_archive(folder / done.stdout.split()[-1], folder / "installed", "zip")
    return folder / "installed"
