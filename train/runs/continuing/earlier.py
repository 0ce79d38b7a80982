"""Finds the run that an earlier start of the same job has left, so that a job that is started again
goes on with it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from train.runs.continuing.resuming import flaw_of
from train.runs.folder import CHECKPOINTS, CONFIG
from train.runs.lock import forget_lock
from train.runs.manifest import MANIFEST
from train.runs.stored.lock import forget_stored_lock
from train.runs.stored.object_store import StoredFolder


def found_run(runs: Path) -> Path | None:
    """Return the newest run in the job's own folder. Checkpoints of which only a part was copied
    are removed.
    """
    found = sorted(config.parent for config in runs.glob(f"*/{CONFIG}"))
    if not found:
        return None
    run = found[-1]
    for checkpoint in (run / CHECKPOINTS).glob("[!.]*"):
        # The list arrives like any other file: without it nobody knows what else is missing.
        if (checkpoint / MANIFEST).is_file():
            missing = flaw_of(checkpoint)
        else:
            missing = f"{MANIFEST} is missing"
        if missing:
            print(f"{checkpoint.name} is incomplete and left out: {missing}", flush=True)
            shutil.rmtree(checkpoint)
    forget_lock(run)
    return run


def found_stored_run(runs: StoredFolder) -> StoredFolder | None:
    """Return the newest run in the job's own folder in an object store. Its lock is taken from the
    job's earlier start.
    """
    named = sorted(
        name.partition("/")[0]
        for name in runs.names()
        if name.count("/") == 1 and name.endswith(f"/{CONFIG}")
    )
    if not named:
        return None
    forget_stored_lock(runs / named[-1])
    return runs / named[-1]
