"""Commands of procsnake as messages suggest them."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path


def shell_command(*words: object) -> str:
    """Return a `procsnake` command that can be pasted into a shell: quoted, and with the program's
    path if it isn't on PATH.

    Placeholders for the reader to fill in are words in capitals, such as RUN or FILE.
    """
    return f"{program()} {shlex.join(map(str, words))}"


def program() -> str:
    """Return the command that calls this installation of procsnake from the working directory."""
    installed = Path(sysconfig.get_path("scripts"), "procsnake")
    on_path = shutil.which("procsnake")
    if on_path and (not installed.exists() or os.path.samefile(on_path, installed)):
        return "procsnake"
    if not installed.exists():
        return shlex.join([sys.executable, "-m", "procsnake"])
    try:
        near = os.path.relpath(installed)
    except OSError:
        # The working directory has been removed.
        near = os.pardir
    return shlex.quote(str(installed) if near.startswith(os.pardir) else near)
