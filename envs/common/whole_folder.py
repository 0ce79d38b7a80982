"""Writes folders so that they appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_folder(target: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files, by name, as the folder `target`, in place of one that is there. Raises `OSError`.

    They are written beside the target, and swapped by renaming. If the second rename fails the old folder comes back.
    """
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    old = fresh.with_suffix(".old")
    try:
        for name, content in contents.items():
            (fresh / name).write_bytes(content)
        fresh.chmod(0o755)
        if target.exists():
            os.replace(target, old)
        os.replace(fresh, target)
    except BaseException:
        if old.exists() and not target.exists():
            os.replace(old, target)
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
