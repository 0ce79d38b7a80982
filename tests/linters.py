"""Programs beside this Python that say what is wrong with templates and Dockerfiles."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest


def lint(tool: str, *files: Path) -> subprocess.CompletedProcess[str]:
    """What the tool says of files. Skips the test where it is not installed."""
    program = Path(sysconfig.get_path("scripts")) / tool
    if not program.is_file():
        pytest.skip(f"{tool} is not installed")
    return subprocess.run(
        [program, *files], capture_output=True, text=True, timeout=300, check=False
    )
