"""A search's description in its folder, so that an interrupted one can continue."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import yaml

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from envs.common.strangers import own_files
from envs.common.strangers.bounded import MAX_YAML_BYTES, parse_yaml, read_text
from envs.common.whole_files import write_whole
from train.config import Experiment
from train.runs.folder import RunError, disk_errors
from train.settings.sections import Budget

SEARCH = "search.yaml"
_SIGNATURE = "search.signature"
RAY_TUNE = "ray_tune"
"""The folder of Ray Tune's own files, which are pickles."""


def resume_search_command(folder: Path) -> str:
    """Return the shell command that continues the search in this folder."""
    return shell_command("tune", "--resume", folder)


def write_search(
    folder: Path, experiment: Experiment, budget: Budget, *, has_ended: bool = False
) -> None:
    """Write the search's description and the best experiment's budget, signed as this machine's
    own.
    """
    note = {"budget": asdict(budget), "has_ended": has_ended}
    text = yaml.safe_dump({**experiment.to_dict(), "run": note}, sort_keys=False)
    with disk_errors(folder):
        write_whole(folder / SEARCH, text)
        write_whole(folder / _SIGNATURE, own_files.sign(_signed_part(folder, text)))


def read_search(folder: Path) -> tuple[Experiment, Budget]:
    """Return what `write_search` wrote.

    Raises `RunError` for a folder without a search, for one from another machine or path, because
    continuing opens pickles, and for a search that has ended."""
    try:
        text = read_text(folder / SEARCH, MAX_YAML_BYTES)
        signature = read_text(folder / _SIGNATURE, MAX_YAML_BYTES)
        note = parse_yaml(text)["run"]
        budget = Budget(**note["budget"])
        has_ended = bool(note["has_ended"])
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        raise RunError(
            f"{folder} holds no search to continue ({error}).",
            next_commands={"start one": ("tune", "EXPERIMENT")},
        ) from error
    if not own_files.is_signed(_signed_part(folder, text), signature):
        raise RunError(
            f"{folder} was not made on this machine, or has been moved, and continuing would"
            " open its pickles"
        )
    if has_ended:
        raise RunError(
            f"the search in {folder} has ended: its trials are in trials.csv. For other values"
            " start one with another seed: --set seed=1"
        )
    return Experiment.load(folder / SEARCH), budget


def _signed_part(folder: Path, text: str) -> bytes:
    """With the place, so that a folder that somebody else has changed and sent back isn't
    trusted.
    """
    return f"{os.path.realpath(folder)}\n{text}".encode()
