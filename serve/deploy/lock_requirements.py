"""Write `requirements.txt` beside this file: what the server's image installs, in constraints.txt's versions, with its hashes.

    python serve/deploy/lock_requirements.py          after each change of setup.py or constraints.txt

pip is asked what it would install on x86-64 and on ARM; wheels alone, so no code of a package runs while the image is built.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[2]
TARGET = Path(__file__).with_name("requirements.txt")
MACHINES = ("x86_64", "aarch64")
PYTHON, GLIBCS = "3.11", (17, 26, 27, 28, 34)
"""The versions of Python and glibc in the image. Debian bookworm has glibc 2.36."""
BUILD = ["setuptools"]
"""The packages that build procsnake itself."""


def said_by_setup() -> dict[str, Any]:
    """Return what setup.py says of the project, by setuptools' own keywords."""
    with mock.patch("setuptools.setup") as told:
        exec(compile((ROOT / "setup.py").read_text(), "setup.py", "exec"), {"__file__": str(ROOT / "setup.py")})
    return dict(told.call_args.kwargs)


def wanted() -> list[str]:
    """Return the requirements of `procsnake[serve,postgres]`."""
    about = said_by_setup()
    return [*about["install_requires"], *about["extras_require"]["serve"], *about["extras_require"]["postgres"], *BUILD]


def hashes(machine: str) -> dict[str, set[str]]:
    """Return, by `name==version`, the SHA-256 of each file that pip would install on the machine."""
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in GLIBCS] + [f"--platform=manylinux2014_{machine}"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--only-binary=:all:"]
        command += [*platforms, f"--python-version={PYTHON}", f"--target={folder}", f"--report={report}"]
        command += [f"--constraint={ROOT / 'constraints.txt'}", *(one.partition(";")[0] for one in wanted())]
        subprocess.run(command, check=True)
        found = json.loads(report.read_text())["install"]
    locked: dict[str, set[str]] = {}
    for one in found:
        name = re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower()
        locked.setdefault(f"{name}=={one['metadata']['version']}", set()).add(
            one["download_info"]["archive_info"]["hashes"]["sha256"]
        )
    return locked


def main() -> None:
    """Write `requirements.txt`."""
    locked: dict[str, set[str]] = {}
    for machine in MACHINES:
        for requirement, found in hashes(machine).items():
            locked.setdefault(requirement, set()).update(found)
    lines = ["# Written by serve/deploy/lock_requirements.py; for Python 3.11 on Linux, x86-64 and ARM."]
    for requirement in sorted(locked):
        lines.append(" \\\n".join([requirement, *(f"    --hash=sha256:{one}" for one in sorted(locked[requirement]))]))
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
