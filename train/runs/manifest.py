"""Lists the files of a checkpoint.

So an incomplete copy is noticed, and other people's checkpoints can be told from our own.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from envs.common.strangers import own_files
from envs.common.strangers.bounded import parse_json, read_bytes
from train.runs.export import WEIGHTS

MANIFEST = "files.json"
SIGNATURE = "files.json.hmac"
_MAX_BYTES = 4 << 20
_PIECE = 1 << 20
_MODULE = "learner_group/learner/rl_module/default_policy"
_RLLIB_FILES = ("rllib_checkpoint.json", "learner_group/metadata.json", f"{_MODULE}/metadata.json")
_RLLIB_STATES = ("algorithm_state", "learner_group/learner/state", f"{_MODULE}/module_state")
_RLLIB_SUFFIXES = (".pkl", ".msgpack")


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
    """Return what is wrong with the checkpoint; None if it is whole.

    A checkpoint of an older procsnake has no list. It must have at least the files that RLlib or
    the algorithm needs to continue."""
    if not (checkpoint / MANIFEST).is_file():
        return _structural_flaw(checkpoint)
    try:
        listed = _read_list(checkpoint)
        for name, told in listed.items():
            path = checkpoint / name
            # Until November 2026 the list had sizes alone.
            if isinstance(told, int):
                size, digest = (told, None)
            else:
                size, digest = (told["bytes"], told["sha256"])
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != size:
                return f"{name} has {path.stat().st_size} bytes of {size}"
            if digest is not None and _digest(path) != digest:
                return f"{name} was changed"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{MANIFEST} can't be read: {str(error) or type(error).__name__}"
    return None


def is_own(checkpoint: Path) -> bool:
    """Whether this machine wrote a checkpoint that has no `flaw`: its list is signed, and it holds
    no other files.
    """
    try:
        content = (checkpoint / MANIFEST).read_bytes()
        signature = (checkpoint / SIGNATURE).read_text(encoding="ascii")
        return own_files.is_signed(content, signature) and set(_read_list(checkpoint)) == set(
            _files(checkpoint)
        )
    except (OSError, ValueError):
        return False


def _read_list(checkpoint: Path) -> dict[str, Any]:
    listed = parse_json(read_bytes(checkpoint / MANIFEST, _MAX_BYTES))
    if not isinstance(listed, dict):
        raise ValueError(f"it holds {type(listed).__name__}")
    return listed


def _structural_flaw(checkpoint: Path) -> str | None:
    names = set(_files(checkpoint))
    if WEIGHTS in names:
        if names & {"optimizer.pt", "trainer.states"}:
            return None
        return "the optimiser's state is missing"
    missing = [name for name in _RLLIB_FILES if name not in names]
    missing += [
        state
        for state in _RLLIB_STATES
        if not names & {state + suffix for suffix in _RLLIB_SUFFIXES}
    ]
    return f"{missing[0]} is missing" if missing else None


def _files(checkpoint: Path) -> dict[str, Path]:
    found = {
        path.relative_to(checkpoint).as_posix(): path
        for path in sorted(checkpoint.rglob("*"))
        if path.is_file()
    }
    return {name: path for name, path in found.items() if name not in (MANIFEST, SIGNATURE)}


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
