"""Finds the checkpoint at which a run continues: the newest whole one.

It must have been written on this machine, or be trusted by the user.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.player import Player
from train.config import Experiment
from train.runs import manifest
from train.runs.folder import CONFIG, Checkpoint, RunError, RunFolder, read_counters

Say = Callable[[str], None]
_TRACKERS_OWN = "wandb"
"""A folder in which a tracker makes links of its own. procsnake writes nothing there."""


def require_trust(folder: RunFolder, experiment: Experiment, *, trust: bool) -> None:
    """Raise `RunError` if continuing the run needs trust that wasn't given, or if links lead out of
    its folder.

    Call it before anything is written to the folder, its lock included. Nothing is written here.
    """
    _refuse_links(folder.path)
    if not trust:
        _refuse_strangers(folder, experiment, _flaws(folder))


def _refuse_links(run: Path) -> None:
    """Raise `RunError` for a link in the folder. Through it, files elsewhere would be written or
    removed.
    """
    for parent, folders, files in os.walk(run):
        for name in sorted([*folders, *files]):
            path = Path(parent, name)
            if path.is_symlink():
                raise RunError(
                    f"{path} is a link, and continuing a run through it would write elsewhere."
                    " Replace the link by its target"
                )
        folders[:] = [name for name in folders if name != _TRACKERS_OWN]


def starting_point(
    folder: RunFolder, experiment: Experiment, *, trust: bool, say: Say
) -> Checkpoint | None:
    """Return the newest whole checkpoint; None for a run that has none yet.

    Call it after `require_trust`, with the run's lock held, and before executing anything of the
    run. Damaged checkpoints are set aside, which `say` reports. Raises `RunError` if all are
    damaged, or if the run would execute code from another machine: a checkpoint is a pickle, and
    `config.yaml` may name modules and files of rules. With `trust` the run is signed as this
    machine's own instead."""
    flaws = _flaws(folder)
    if not trust:
        _refuse_strangers(folder, experiment, flaws)
    checkpoints = folder.checkpoints()
    damaged = [checkpoint for checkpoint in checkpoints if flaws[checkpoint]]
    if damaged and len(damaged) == len(checkpoints):
        raise RunError(
            f"{folder.path} has no whole checkpoint: in {damaged[-1].name},"
            f" {flaws[damaged[-1]]}. Copy the run again.",
            next_commands={"or start a new one": ("train", "--config", folder.path / CONFIG)},
        )
    for checkpoint, flaw in flaws.items():
        if flaw:
            new_path = folder.set_aside(checkpoint)
            say(f"checkpoint {checkpoint.name} is left out: {flaw}. It is kept as {new_path.name}")
    if trust:
        _adopt(folder, _whole(flaws))
    return folder.newest_checkpoint()


def _flaws(folder: RunFolder) -> dict[Path, str | None]:
    """The flaw of each checkpoint of the run; None for a whole one."""
    checkpoints = [*folder.checkpoints(), *folder.best_checkpoints()]
    return {checkpoint: flaw_of(checkpoint) for checkpoint in checkpoints}


def _whole(flaws: Mapping[Path, str | None]) -> list[Path]:
    return [checkpoint for checkpoint, flaw in flaws.items() if flaw is None]


def _refuse_strangers(
    folder: RunFolder, experiment: Experiment, flaws: Mapping[Path, str | None]
) -> None:
    """Raise `RunError` if the run would execute code that this machine didn't write."""
    strangers = [
        f"checkpoint {checkpoint.name}"
        for checkpoint in _whole(flaws)
        # A process that still writes the run may have removed one meanwhile.
        if not manifest.is_own(checkpoint) and checkpoint.is_dir()
    ]
    code = list(named_code(experiment))
    if code and not folder.has_own_config():
        strangers.insert(0, f"{CONFIG}, which names {', '.join(code[:5])}")
    if strangers:
        raise RunError(
            f"{folder.path} was not made on this machine ({strangers[0]}), and continuing"
            " executes code in it, because checkpoints are pickles.",
            next_commands={
                "if you trust who made it, or made it yourself elsewhere or with an older"
                " procsnake": ("train", "--resume", folder.path, "--trust")
            },
        )


def flaw_of(checkpoint: Path) -> str | None:
    """Return what is wrong with the checkpoint of a run; None if it is whole."""
    if flaw := manifest.flaw(checkpoint):
        return flaw
    try:
        read_counters(checkpoint)
    except RunError:
        return "its counters can't be read"
    return None


def named_code(experiment: Experiment) -> Iterator[str]:
    """Yield the modules and files of rules that a run of the experiment executes."""
    yield from experiment.modules
    yield from (text for text in _texts(experiment.to_dict()) if _is_rules(text))


def _is_rules(player: str) -> bool:
    """Return whether `agents.make` would execute a file of rules for this player."""
    # A file whose name looks like options may appear later: a player is made when a game begins.
    return player.endswith(".py") or bool(Player.of(player).rules)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a nested value of settings."""
    if isinstance(value, str):
        yield value
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _adopt(folder: RunFolder, checkpoints: list[Path]) -> None:
    """Sign the run as this machine's own."""
    for checkpoint in checkpoints:
        if not manifest.is_own(checkpoint):
            manifest.write_manifest(checkpoint)
    if not folder.has_own_config():
        folder.sign_config()
