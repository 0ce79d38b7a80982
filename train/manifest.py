"""What a checkpoint consists of, so that one that was copied only in part (to S3, when a machine was taken away) is noticed."""

from __future__ import annotations

import json
from pathlib import Path

MANIFEST = "files.json"


def write_manifest(checkpoint: Path) -> None:
    """List the files that the folder holds now, with their sizes."""
    files = {str(path.relative_to(checkpoint)): path.stat().st_size for path in sorted(checkpoint.rglob("*")) if path.is_file()}
    (checkpoint / MANIFEST).write_text(json.dumps(files, indent=2) + "\n", encoding="utf-8")


def is_whole(checkpoint: Path) -> bool:
    """Whether the folder holds all that was written into it."""
    try:
        files = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return all((checkpoint / name).is_file() and (checkpoint / name).stat().st_size == size for name, size in files.items())
