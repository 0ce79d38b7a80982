"""Lists the files of a checkpoint, with a signature.

The list shows whether a copy is complete. The signature identifies this machine's own checkpoints.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from envs.common.strangers import own_files
from envs.common.strangers.bounded import parse_json, read_bytes

MANIFEST = "files.json"
SIGNATURE = "files.json.hmac"
_MAX_BYTES = 4 << 20
_PIECE = 1 << 20


def write_manifest(checkpoint: Path) -> None:
    """Write and sign a list of the files that the folder holds, with their sizes and SHA-256."""
    files = {
        name: {"bytes": path.stat().st_size, "sha256": _digest(path)}
        for name, path in _files(checkpoint).items()
    }
    content = (json.dumps(files, indent=2) + "\n").encode()
    (checkpoint / MANIFEST).write_bytes(content)
    (checkpoint / SIGNATURE).write_text(own_files.sign(content), encoding="ascii")


def flaw(checkpoint: Path) -> str | None:
    """Return what is wrong with the checkpoint; None if it is whole."""
    # The list arrives like any other file: without it nobody knows what else is missing.
    if not (checkpoint / MANIFEST).is_file():
        return f"{MANIFEST} is missing"
    try:
        for name, entry in _read_list(checkpoint).items():
            path = checkpoint / name
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != entry["bytes"]:
                return f"{name} has {path.stat().st_size} bytes of {entry['bytes']}"
            if _digest(path) != entry["sha256"]:
                return f"{name} was changed"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST} can't be read: {str(error) or type(error).__name__}"
    return None


def is_own(checkpoint: Path) -> bool:
    """Return whether this machine wrote the checkpoint, which must have no `flaw`.

    Its list is signed by this machine then, and the folder holds no other files."""
    try:
        content = (checkpoint / MANIFEST).read_bytes()
        signature = (checkpoint / SIGNATURE).read_text(encoding="ascii")
        if not own_files.is_signed(content, signature):
            return False
        return _read_list(checkpoint).keys() == _files(checkpoint).keys()
    except (OSError, ValueError):
        return False


def _read_list(checkpoint: Path) -> dict[str, Any]:
    """The entries of the list by file name. Raises `OSError` or `ValueError`."""
    entries = parse_json(read_bytes(checkpoint / MANIFEST, _MAX_BYTES))
    if not isinstance(entries, dict):
        raise ValueError(f"it holds {type(entries).__name__}")
    return entries


def _files(checkpoint: Path) -> dict[str, Path]:
    """The checkpoint's files by name, without the list and its signature."""
    files = {
        path.relative_to(checkpoint).as_posix(): path
        for path in sorted(checkpoint.rglob("*"))
        if path.is_file()
    }
    return {name: path for name, path in files.items() if name not in (MANIFEST, SIGNATURE)}


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
