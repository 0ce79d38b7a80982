"""Keeps what the cells of notebooks print and draw, for their pages: `make outputs`, or `python
docs/hooks/notebook_outputs.py [--full] NAME …` for single ones.

A notebook runs in miniature (`FAST=1`) unless `--full` is given, or its outputs are kept of a whole
run."""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
KEPT = Path(__file__).parents[1] / "pictures" / "notebooks"
MOST_LINES = 40
MOST_FRAMES = 60
"""Of a film."""
COLORS = 64
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[^\n]*\r(?=[^\n])|^```\w*$\n?", re.MULTILINE)


def code_hash(source: str) -> str:
    """Return what tells whether kept outputs are of this cell."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def read(name: str) -> dict[str, Any]:
    """Return the kept outputs of a notebook; nothing for one that has none."""
    path = KEPT / f"{name}.json"
    if not path.is_file():
        return {"fast": True, "minutes": 0.0, "cells": []}
    outputs: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return outputs


class NotebookFailedError(Exception):
    """A cell raised, took too long, or ended its kernel."""


def execute(name: str, folder: Path, *, kernel: str = "python3", timeout: int = 7200) -> Any:
    """Execute a notebook in `folder`, and return it with its outputs. The tests use this, too.

    `timeout` is the most seconds that a cell may take. Raises `NotebookFailedError`."""
    import jupytext
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = jupytext.read(NOTEBOOKS / f"{name}.py")
    place = {"metadata": {"path": str(folder)}}
    try:
        NotebookClient(notebook, timeout=timeout, kernel_name=kernel, resources=place).execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise NotebookFailedError(f"{name}: {error}") from error
    return notebook


def keep(notebook: Any, name: str, *, fast: bool, minutes: float) -> None:
    """Write the outputs of an executed notebook, in place of older ones."""
    KEPT.mkdir(exist_ok=True)
    for old in KEPT.glob(f"{name}[-.]*"):
        old.unlink()
    cells = []
    pictures = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        names = []
        for kind, content in _pictures(cell.outputs):
            pictures += 1
            names.append(f"{name}-{pictures}.{kind}")
            (KEPT / names[-1]).write_bytes(small(content))
        text = "".join(map(_text, cell.outputs))
        cells.append({"code": code_hash(cell.source), "text": tidy(text), "pictures": names})
    outputs = {"fast": fast, "minutes": round(minutes, 1), "cells": cells}
    (KEPT / f"{name}.json").write_text(
        json.dumps(outputs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _pictures(outputs: Sequence[Any]) -> Iterator[tuple[str, bytes]]:
    for output in outputs:
        for kind in ("png", "gif"):
            if encoded := output.get("data", {}).get(f"image/{kind}"):
                yield kind, base64.b64decode(encoded)


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text) if output.name == "stdout" else ""
    data = output.get("data", {})
    if any(kind.startswith(("image/", "application/")) for kind in data):
        return ""
    return str(data.get("text/markdown", data.get("text/plain", ""))) + "\n"


def tidy(text: str) -> str:
    """Return a text without colours, what was overwritten, this machine's folders, and all but its
    first and last lines if it is long.
    """
    text = re.sub(r"/\S*/bin/procsnake\b", "procsnake", _CONTROL.sub("", text)).strip("\n")
    text = re.sub(r"/\S*/workshop\b", "workshop", text)
    text = text.replace(str(NOTEBOOKS.parent), "procsnake")
    if "procsnake is ready." in text:
        text = text[text.index("procsnake is ready.") :]
    lines = [line.rstrip() for line in text.splitlines()]
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines = [*lines[:half], "…", *lines[-half:]]
    return "\n".join(lines)


def small(content: bytes) -> bytes:
    """Return a picture with fewer colours, a film also with fewer frames."""
    from PIL import Image, ImageSequence

    picture = Image.open(io.BytesIO(content))
    every = max(1, -(-getattr(picture, "n_frames", 1) // MOST_FRAMES))
    frames = [
        frame.convert("RGB").quantize(COLORS)
        for number, frame in enumerate(ImageSequence.Iterator(picture))
        if number % every == 0
    ]
    written = io.BytesIO()
    film: dict[str, Any] = {}
    if picture.format == "GIF":
        duration = every * int(picture.info.get("duration", 100))
        film = {"save_all": True, "append_images": frames[1:], "duration": duration, "loop": 0}
    frames[0].save(written, picture.format, optimize=True, **film)
    return min(content, written.getvalue(), key=len)


def is_stale(name: str) -> bool:
    """Return whether a notebook has kept outputs that aren't of today's cells."""
    import jupytext

    kept = [cell["code"] for cell in read(name)["cells"]]
    cells = jupytext.read(NOTEBOOKS / f"{name}.py").cells
    codes = [code_hash(cell.source) for cell in cells if cell.cell_type == "code"]
    return bool(kept) and kept != codes


def main() -> int:
    """Run the named notebooks, or all whose kept outputs are stale, and keep what they print and
    draw. Returns the exit code, which is 1 if any of them failed.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--full", action="store_true", help="not in miniature")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(NOTEBOOKS.parent)
    exit_code = 0
    for name in options.names or filter(is_stale, (p.stem for p in sorted(NOTEBOOKS.glob("*.py")))):
        fast = read(name)["fast"] and not options.full
        os.environ["FAST"] = "1" if fast else "0"
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as folder:
                notebook = execute(name, Path(folder))
        except NotebookFailedError as error:
            print(error, file=sys.stderr, flush=True)
            exit_code = 1
            continue
        minutes = (time.monotonic() - began) / 60
        keep(notebook, name, fast=fast, minutes=minutes)
        print(f"kept: {name}, {minutes:.1f} minutes", flush=True)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
