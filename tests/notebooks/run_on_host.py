"""Runs notebooks beside the packages of a host's image: `make hosted-notebooks HOST=colab-3.12
NOTEBOOKS="4_procgen 6_submission"`.

`hosts/` has the packages of each host, with their date. The environment `.venv-HOST` has these
alone, so a notebook's first cell installs procsnake, from a wheel of this tree. Everything runs in
miniature (`FAST=1`)."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
HOSTS = Path(__file__).with_name("hosts")


def python_of(host: str) -> str:
    """Return the version of Python of a host, which ends its name."""
    return host.rpartition("-")[2]


def environment_of(host: str) -> Path:
    """Make the environment of a host, or take procsnake out of the one that is there."""
    place = REPOSITORY / f".venv-{host}"
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    python = str(place / "bin" / "python")
    if not place.exists():
        subprocess.run([uv, "venv", "--seed", "--python", python_of(host), place], check=True)
    pins = str(HOSTS / f"{host}.txt")
    subprocess.run([uv, "pip", "install", "--python", python, "--requirement", pins], check=True)
    subprocess.run([uv, "pip", "uninstall", "--python", python, "procsnake"], check=True)
    return place


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
    import jupytext
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = jupytext.read(REPOSITORY / "notebooks" / f"{name}.py")
    (folder / name).mkdir()
    place = {"metadata": {"path": str(folder / name)}}
    began = time.monotonic()
    try:
        NotebookClient(notebook, timeout=3600, kernel_name="host", resources=place).execute()
    except CellExecutionError as error:
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernel_of(environment_of(options.host), folder)
        source = wheel(folder).as_uri()
        os.environ |= {"JUPYTER_PATH": name, "FAST": "1", "PROCSNAKE_SOURCE": source}
        results = [runs(notebook, folder) for notebook in options.notebooks]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
