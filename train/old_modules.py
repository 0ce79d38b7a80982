"""Finds modules that have moved by their old names, because old checkpoints hold pickled references
to them.

Runs of commit 9be3ed9 and earlier, when the files of `train/` lay elsewhere, name these modules.
The finder returns today's module for the old name. It works in the driver and in every Ray worker,
because each of them imports `train` first."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

NEW_NAMES = {
    "train.batch_runner": "train.rllib.env_runner",
    "train.batched_algorithm": "train.rllib.batched_algorithm",
    "train.connector": "train.rllib.connector",
    "train.fragment": "train.rollouts.fragment",
    "train.modules": "train.rllib.modules",
    "train.q_runner": "train.rollouts.q_runner",
    "train.recurrent": "train.rollouts.recurrent",
    "train.replay_buffer": "train.rollouts.replay_buffer",
}


class OldNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of `NEW_NAMES` by their old names. The module is the same object under both
    names.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in NEW_NAMES:
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Leave it to Python; `exec_module` puts the module of today in its place."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(NEW_NAMES[module.__name__])


def understand_old_names() -> None:
    """Make `import` and pickle find moved modules by their old names, from now on in this
    process.
    """
    sys.meta_path.append(OldNames())
