"""Python 3.7 with the stack of 2020, built once and kept between runs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from serve.aicrowd.export import TEMPLATE

REQUIREMENTS = TEMPLATE / "requirements-cpu.txt"
FIRST = ["pip==24.0", "setuptools==65.7.0", "wheel==0.42.0"]
_DONE = ".complete"


def find_python() -> Path | None:
    """A Python 3.7: PROCSNAKE_PYTHON37, or one on the PATH, or pyenv's."""
    named = [os.environ.get("PROCSNAKE_PYTHON37"), shutil.which("python3.7")]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [*filter(None, named), *sorted(pyenv.glob("3.7.*/bin/python"), reverse=True)]
    return next((Path(python) for python in candidates if _is_37(python)), None)


def _is_37(python: str | Path) -> bool:
    """pyenv puts programs on the PATH that only say how to choose one."""
    done = subprocess.run(
        [python, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode == 0 and done.stdout.startswith("Python 3.7.")


def build(python: Path) -> Path:
    """The environment's bin folder. Its place tells what is in it; one that was left half-built is
    built anew.
    """
    content = "\n".join([str(python), *FIRST, REQUIREMENTS.read_text()])
    cache = Path(os.environ.get("PROCSNAKE_CACHE", Path.home() / ".cache" / "procsnake"))
    target = cache / f"legacy-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    programs = target / "bin"
    cache.mkdir(parents=True, exist_ok=True)
    with open(target.with_suffix(".lock"), "w") as lock:
        # pytest's workers each ask for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / _DONE).exists():
            shutil.rmtree(target, ignore_errors=True)
            _run(python, "-m", "venv", target)
            _run(programs / "pip", "install", "--quiet", *FIRST)
            _run(programs / "pip", "install", "--quiet", "--requirement", REQUIREMENTS)
            (target / _DONE).touch()
    return programs


def _run(*command: object) -> None:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stderr[-3000:]}"
