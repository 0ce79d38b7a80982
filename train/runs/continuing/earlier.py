"""Finds the run of an earlier start of the same job, so that the job continues it."""

from __future__ import annotations

import shutil
from pathlib import Path

from train.runs.continuing.resuming import flaw_of
from train.runs.folder import CHECKPOINTS, CONFIG
from train.runs.lock import forget_lock
from train.runs.stored.lock import forget_stored_lock
from train.runs.stored.object_store import StoredFolder


def earlier_run(runs: Path) -> Path | None:
    """Return the newest run in the job's own folder, or None.

    Its lock is removed, and so are checkpoints of which only a part was copied."""
    run = max((config.parent for config in runs.glob(f"*/{CONFIG}")), default=None)
    if run is None:
        return None
    for checkpoint in (run / CHECKPOINTS).glob("[!.]*"):
        flaw = flaw_of(checkpoint)
        if flaw:
            print(f"{checkpoint.name} is incomplete and left out: {flaw}", flush=True)
            shutil.rmtree(checkpoint)
    forget_lock(run)
    return run


def earlier_stored_run(runs: StoredFolder) -> StoredFolder | None:
    """Return the newest run in the job's own folder in an object store, or None.

    The lock of the job's earlier start is removed."""
    names = [
        name.removesuffix(f"/{CONFIG}")
        for name in runs.names()
        if name.count("/") == 1 and name.endswith(f"/{CONFIG}")
    ]
    if not names:
        return None
    run = runs / max(names)
    forget_stored_lock(run)
    return run
