"""Finds where a run continues: at the newest whole checkpoint, if this machine wrote it or the user
trusts who did.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from envs.common.shell_command import shell_command
from train.config import Experiment
from train.runs.folder import CONFIG, Checkpoint, RunError, RunFolder, read_counters, resume_command
from train.runs.manifest import flaw, is_own, write_manifest

Say = Callable[[str], None]
_TRACKERS_OWN = "wandb"
"""A folder in which a tracker makes links of its own. procsnake writes nothing there."""


def require_trust(folder: RunFolder, experiment: Experiment, *, trust: bool) -> None:
    """Raise `RunError` if going on with the run needs trust that wasn't given, or if links lead out
    of its folder.

    Call it before anything is written to the folder, its lock included. Nothing is written here.
    """
    _refuse_links(folder.path)
    if not trust:
        _refuse_strangers(folder, experiment, _flaws(folder))


def _refuse_links(run: Path) -> None:
    """Raise `RunError` for a link in the folder: what is written to the run, or removed from it,
    would be elsewhere.
    """
    for parent, folders, files in os.walk(run):
        links = [
            Path(parent, name)
            for name in sorted([*folders, *files])
            if Path(parent, name).is_symlink()
        ]
        if links:
            raise RunError(
                f"{links[0]} is a link, and going on with a run through it would write to another"
                " place. Put what it leads to in its place"
            )
        folders[:] = [name for name in folders if name != _TRACKERS_OWN]


def starting_point(
    folder: RunFolder, experiment: Experiment, *, trust: bool, say: Say
) -> Checkpoint | None:
    """Return the newest whole checkpoint; None for a run that has none yet. Call it before anything
    of the run is executed, and after `require_trust`, with the run's lock held.

    Damaged checkpoints are set aside, which `say` reports. Raises `RunError` if all are damaged, or
    if the run would execute code that this machine didn't write: a checkpoint is a pickle, and
    `config.yaml` may name modules and files of rules. With `trust` the run is signed as this
    machine's own instead."""
    flaws = _flaws(folder)
    whole = [checkpoint for checkpoint, found in flaws.items() if found is None]
    if not trust:
        _refuse_strangers(folder, experiment, flaws)
    damaged = [checkpoint for checkpoint in folder.checkpoints() if flaws[checkpoint]]
    if damaged and not any(checkpoint in whole for checkpoint in folder.checkpoints()):
        raise RunError(
            f"{folder.path} has no whole checkpoint: in {damaged[-1].name}, {flaws[damaged[-1]]}."
            " Copy the run anew, or begin again:"
            f" {shell_command('train', '--config', folder.path / CONFIG)}"
        )
    for checkpoint in flaws:
        if flaws[checkpoint]:
            kept = folder.set_aside(checkpoint)
            say(
                f"checkpoint {checkpoint.name} is left out: {flaws[checkpoint]}. It is kept as"
                f" {kept.name}"
            )
    if trust:
        _adopt(folder, whole)
    return folder.newest_checkpoint()


def _flaws(folder: RunFolder) -> dict[Path, str | None]:
    """What is wrong with each checkpoint of the run, None for a whole one."""
    return {
        checkpoint: flaw_of(checkpoint)
        for checkpoint in [*folder.checkpoints(), *folder.best_checkpoints()]
    }


def _refuse_strangers(
    folder: RunFolder, experiment: Experiment, flaws: Mapping[Path, str | None]
) -> None:
    """Raise `RunError` if the run would execute code that this machine didn't write."""
    whole = [checkpoint for checkpoint, found in flaws.items() if found is None]
    # A process that still writes the run may have removed one meanwhile.
    strangers = [
        f"checkpoint {checkpoint.name}"
        for checkpoint in whole
        if not is_own(checkpoint) and checkpoint.is_dir()
    ]
    code = list(named_code(experiment))
    if code and not folder.has_own_config():
        strangers.insert(0, f"{CONFIG}, which names {', '.join(code[:5])}")
    if strangers:
        raise RunError(
            f"{folder.path} was not made on this machine ({strangers[0]}), and going on executes"
            " code that it brings: checkpoints are pickles. If you trust who made it, or made it"
            f" yourself elsewhere or with an older procsnake: {resume_command(folder.path)} --trust"
        )


def flaw_of(checkpoint: Path) -> str | None:
    """Return what is wrong with the checkpoint of a run; None if it is whole."""
    if found := flaw(checkpoint):
        return found
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
    """Whether `agents.make` would execute a file of rules for this player. What follows a question
    mark are its options.
    """
    return (
        any(path.endswith(".py") for path in (player, player.partition("?")[0])) or ".py+" in player
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _adopt(folder: RunFolder, checkpoints: list[Path]) -> None:
    for checkpoint in checkpoints:
        if not is_own(checkpoint):
            write_manifest(checkpoint)
    if not folder.has_own_config():
        folder.sign_config()
