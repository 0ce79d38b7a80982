"""A stand-in of AIcrowd's starter kit, from the facts of its repository, and what the grader does
with it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

KIT = Path(__file__).with_name("kit")
NOT_TO_BE_EDITED = ("aicrowd_helpers", "envs/procgen_env_wrapper.py", "rollout.py", "train.py")


def put_back(entry: Path) -> Path:
    """The entry as the grader runs it: with its own copies of what may not be edited."""
    for name in NOT_TO_BE_EDITED:
        if (KIT / name).is_dir():
            shutil.rmtree(entry / name, ignore_errors=True)
            shutil.copytree(KIT / name, entry / name)
        else:
            shutil.copy(KIT / name, entry / name)
    return entry
