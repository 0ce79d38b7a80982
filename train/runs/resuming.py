"""Finds where a run continues: at the newest whole checkpoint, if this machine wrote it or the user trusts who did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from envs.common.command_line import shell_command
from train.config import Experiment
from train.runs.folder import CONFIG, Checkpoint, RunError, RunFolder, read_counters, resume_command
from train.runs.manifest import flaw, is_own, write_manifest

Say = Callable[[str], None]


def starting_point(folder: RunFolder, experiment: Experiment, *, trust: bool, say: Say) -> Checkpoint | None:
    """Return the newest whole checkpoint; None for a run that has none yet. Call it before anything of the run is executed.

    Damaged checkpoints are set aside, which `say` reports. Raises `RunError` if all are damaged, or if the run would execute
    code that this machine didn't write: a checkpoint is a pickle, and `config.yaml` may name modules and files of rules. With
    `trust` the run is signed as this machine's own instead.
    """
    found = [*folder.checkpoints(), *folder.best_checkpoints()]
    flaws = {checkpoint: flaw_of(checkpoint) for checkpoint in found}
    whole = [checkpoint for checkpoint in found if flaws[checkpoint] is None]
    code, has_own_config = list(named_code(experiment)), folder.has_own_config()
    strangers = [f"checkpoint {checkpoint.name}" for checkpoint in whole if not is_own(checkpoint)]
    if code and not has_own_config:
        strangers.insert(0, f"{CONFIG}, which names {', '.join(code[:5])}")
    if strangers and not trust:
        raise RunError(
            f"{folder.path} was not made on this machine ({strangers[0]}), and going on executes code that it brings: "
            f"checkpoints are pickles. If you trust who made it, or made it yourself elsewhere or with an older procsnake: "
            f"{resume_command(folder.path)} --trust"
        )
    damaged = [checkpoint for checkpoint in folder.checkpoints() if flaws[checkpoint]]
    if damaged and not any(checkpoint in whole for checkpoint in folder.checkpoints()):
        raise RunError(
            f"{folder.path} has no whole checkpoint: in {damaged[-1].name}, {flaws[damaged[-1]]}. Copy the run anew, or begin "
            f"again: {shell_command('train', '--config', folder.path / CONFIG)}"
        )
    for checkpoint in found:
        if flaws[checkpoint]:
            kept = folder.set_aside(checkpoint)
            say(f"checkpoint {checkpoint.name} is left out: {flaws[checkpoint]}. It is kept as {kept.name}")
    if trust:
        _adopt(folder, whole)
    return folder.newest_checkpoint()


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
    """Whether `agents.make` would execute a file of rules for this player. What follows a question mark are its options."""
    return any(path.endswith(".py") for path in (player, player.partition("?")[0])) or ".py+" in player


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
