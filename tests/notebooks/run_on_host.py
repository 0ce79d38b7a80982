"""Runs notebooks beside the packages of a host's image: `make hosted-notebooks IMAGE=colab-3.12
NOTEBOOKS="4_procgen 6_submission"`.

`hosts/` has the packages of each host, with their date. The environment `.venv-HOST` is made anew
with these alone, and the first cell of a notebook installs procsnake, from a wheel of this tree.
Notebooks that ask for the same extras follow each other in one environment, because their first
cells are the same. Everything runs in miniature (`FAST=1`)."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

from tests.notebooks.running import NotebookFailedError, execute

REPOSITORY = Path(__file__).parents[2]
HOSTS = Path(__file__).with_name("hosts")


def python_of(host: str) -> str:
    """Return the version of Python of a host, which ends its name."""
    return host.rpartition("-")[2]


def environment_of(host: str) -> Path:
    """Return where the environment of a host is."""
    return REPOSITORY / f".venv-{host}"


def extras_of(notebook: str) -> str:
    """Return what the first cell of a notebook sets up, such as "serve,train"."""
    program = (REPOSITORY / "notebooks" / f"{notebook}.py").read_text(encoding="utf-8")
    return re.findall(r'^set_up\("(.*)"\)$', program, re.MULTILINE)[0]


def make_environment(host: str, uv: str) -> None:
    """Make the environment of a host, with its packages alone, in the place of an older one. From
    uv's cache this takes seconds.
    """
    place = environment_of(host)
    new = ["venv", "--quiet", "--clear", "--seed", "--python", python_of(host)]
    subprocess.run([uv, *new, place], check=True)
    pins = ["--requirement", HOSTS / f"{host}.txt"]
    install = ["pip", "install", "--quiet", "--python", place / "bin" / "python"]
    subprocess.run([uv, *install, *pins], check=True)


def find_uv() -> str | None:
    """Return the path of uv, on the path or beside this Python."""
    beside = Path(sys.executable).parent
    return shutil.which("uv") or shutil.which("uv", path=str(beside))


def kernel_of(environment: Path, folder: Path) -> None:
    """Write the kernel `host` of this environment below `folder`, for `JUPYTER_PATH`."""
    kernel = folder / "kernels" / "host"
    kernel.mkdir(parents=True)
    python = str(environment / "bin" / "python")
    said = {
        "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "host",
        "language": "python",
    }
    (kernel / "kernel.json").write_text(json.dumps(said), encoding="utf-8")


def wheel(folder: Path) -> Path:
    """Build the wheel of this tree."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*pip, folder, REPOSITORY], check=True)
    (path,) = folder.glob("procsnake-*.whl")
    return path


def runs(name: str, folder: Path) -> bool:
    """Run one notebook in an empty folder, and print whether and in what time."""
    (folder / name).mkdir()
    began = time.monotonic()
    try:
        execute(name, folder / name, kernel="host", timeout=3600)
    except NotebookFailedError as error:
        print(error)
        has_passed = False
    else:
        has_passed = True
    said = "passed" if has_passed else "FAILED"
    print(f"{name}: {said} after {time.monotonic() - began:.0f} s", flush=True)
    return has_passed


def main() -> int:
    """Run the notebooks, one after another. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host", choices=sorted(path.stem for path in HOSTS.glob("*.txt")))
    parser.add_argument("notebooks", nargs="+", metavar="NOTEBOOK")
    options = parser.parse_args()
    uv = find_uv()
    if uv is None:
        print("hosted-notebooks: uv is missing: pip install uv", file=sys.stderr)
        return 1
    exit_code = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernel_of(environment_of(options.host), folder)
        source = wheel(folder).as_uri()
        os.environ |= {"JUPYTER_PATH": name, "FAST": "1", "PROCSNAKE_SOURCE": source}
        for _, notebooks in groupby(sorted(options.notebooks, key=extras_of), key=extras_of):
            make_environment(options.host, uv)
            for notebook in notebooks:
                if not runs(notebook, folder):
                    exit_code = 1
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
