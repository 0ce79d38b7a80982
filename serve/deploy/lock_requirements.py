"""Write what the images install, in constraints.txt's versions, with its hashes: `requirements.txt`
beside each Dockerfile.

    python serve/deploy/lock_requirements.py

Run it after each change of setup.py or constraints.txt, with Python 3.11 on Linux on x86-64.

pip is asked what it would install. For the server that is wheels alone, on x86-64 and on ARM, so no
code of a package runs while the image is built. The image that trains is for x86-64 alone, and gym
comes as source. Its torch isn't locked: it comes from PyTorch's own index, which has one for CPUs
and one for GPUs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[2]
SERVING = Path(__file__).with_name("requirements.txt")
TRAINING = ROOT / "train" / "sagemaker" / "image" / "requirements.txt"
BUILDING = TRAINING.with_name("build-requirements.txt")
MACHINES = ("x86_64", "aarch64")
PYTHON = "3.11"
GLIBCS = (17, 26, 27, 28, 34)
"""The versions of Python and glibc in the image. Debian bookworm has glibc 2.36."""
BUILD = ["setuptools"]
"""The packages that build procsnake itself."""
TRAINING_EXTRAS = ("train", "cluster", "procgen-numpy2", "aws")
PROCGEN = ("gym3==0.3.3", "procgen-mirror==0.10.7")
"""They work beside NumPy 2 but ask for NumPy 1, so they are installed without what they ask for."""


def setup_keywords() -> dict[str, Any]:
    """Return what setup.py says of the project, by setuptools' own keywords."""
    with mock.patch("setuptools.setup") as setup:
        exec(
            compile((ROOT / "setup.py").read_text(), "setup.py", "exec"),
            {"__file__": str(ROOT / "setup.py")},
        )
    return dict(setup.call_args.kwargs)


def server_requirements() -> list[str]:
    """Return the requirements of `procsnake[serve,postgres]`."""
    about = setup_keywords()
    return [
        *about["install_requires"],
        *about["extras_require"]["serve"],
        *about["extras_require"]["postgres"],
        *BUILD,
    ]


def training_requirements() -> list[str]:
    """Return the requirements of the image that trains, but for torch."""
    about = setup_keywords()
    requirements = list(about["install_requires"])
    for extra in TRAINING_EXTRAS:
        requirements += about["extras_require"][extra]
    return [one for one in requirements if not one.startswith("torch==")]


def hashes(machine: str) -> dict[str, set[str]]:
    """Return, by `name==version`, the SHA-256 of each file that pip would install for the server on
    the machine.
    """
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in GLIBCS] + [
        f"--platform=manylinux2014_{machine}"
    ]
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = [
            *platforms,
            f"--python-version={PYTHON}",
            f"--target={folder}",
            "--only-binary=:all:",
        ]
        return _locked(server_requirements(), *elsewhere)


def _locked(requirements: Sequence[str], *options: str) -> dict[str, set[str]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--quiet",
            f"--report={report}",
        ]
        command += [
            *options,
            f"--constraint={ROOT / 'constraints.txt'}",
            *(one.partition(";")[0] for one in requirements),
        ]
        subprocess.run(command, check=True)
        installed = json.loads(report.read_text())["install"]
    locked: dict[str, set[str]] = {}
    for one in installed:
        name = re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower()
        locked.setdefault(f"{name}=={one['metadata']['version']}", set()).add(
            one["download_info"]["archive_info"]["hashes"]["sha256"]
        )
    return locked


def write(target: Path, locked: dict[str, set[str]], machines: str) -> None:
    """Write a file of requirements with their hashes. `machines` names those for which it is."""
    lines = [
        f"# Written by serve/deploy/lock_requirements.py; for Python 3.11 on Linux, {machines}."
    ]
    for requirement in sorted(locked):
        lines.append(
            " \\\n".join(
                [requirement, *(f"    --hash=sha256:{one}" for one in sorted(locked[requirement]))]
            )
        )
    target.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Write the files."""
    locked: dict[str, set[str]] = {}
    for machine in MACHINES:
        for requirement, of_machine in hashes(machine).items():
            locked.setdefault(requirement, set()).update(of_machine)
    write(SERVING, locked, "x86-64 and ARM")
    write(BUILDING, _locked(BUILD), "x86-64")
    write(TRAINING, {**_locked(training_requirements()), **_locked(PROCGEN, "--no-deps")}, "x86-64")


if __name__ == "__main__":
    main()
