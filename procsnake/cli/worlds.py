"""Registers worlds of training and users' own, for commands that take policies of any world."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def register_worlds(player: str, modules: Sequence[str]) -> None:
    """Register the worlds of `train`, and import `modules` and those that the run of `player` was
    trained with.

    The modules in the run's configuration are imported only if this machine wrote it, because
    importing executes code."""
    import train.worlds.build  # noqa: F401  registers the worlds of training
    from agents.player import Player
    from envs.common.parts import import_modules
    from train.runs.folder import CONFIG, RunFolder

    import_modules(modules)
    # A player may be NAME=RUN, RUN/bundle, RULE.py+RUN, RUN+mcts or RUN?option=value.
    parsed = Player.parse(player)
    path = Path(parsed.policy_of_search or parsed.base or player)
    run = path.parent if path.name == "bundle" else path
    if os.path.isfile(run / CONFIG):
        folder, experiment = RunFolder.open(run)
        if folder.has_own_config():
            import_modules(experiment.modules)
