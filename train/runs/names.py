"""Finds the run that the command line names by its folder, as `latest`, or by the beginning of its
name.

Documentation and help use `runs/battlesnake-ppo-…` for the newest run whose name begins so.
"""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from agents.player import Player
from train.runs.folder import CONFIG, RunError

LATEST = "latest"
_PLACE = re.compile(r"(^|(?<=[=+]))(?P<place>[^=+?]+)")
"""The parts of a player's name that may be folders: NAME=FOLDER, RULE.py+FOLDER, FOLDER+SEARCH,
FOLDER?OPTION=VALUE.
"""
_INSIDE = re.compile(r"/(bundle|config\.yaml)$")


def with_runs(
    player: str, *, folder: str | os.PathLike[str] = "runs", taken: frozenset[str] = frozenset()
) -> str:
    """Return `player` with each word that names a run replaced by the run's folder.

    `latest` is the newest run in `folder`. The beginning of a name, with or without its folder or
    an ellipsis (…) behind it, is the newest run whose name begins so. Existing paths, the names in
    `taken` and words that match no run stay. Raises `RunError` for `latest`, and for a beginning
    with an ellipsis, if there is no such run."""
    made = Player.of(player).made
    if "://" in made:
        return player
    options = player.removeprefix(made)
    return _PLACE.sub(lambda match: _run_of(match["place"], Path(folder), taken), made) + options


def _run_of(place: str, folder: Path, taken: frozenset[str]) -> str:
    """The folder of the run that `place` stands for, or `place` itself. Raises `RunError`."""
    word = _INSIDE.sub("", place)
    inside = place.removeprefix(word)
    if word in taken or os.path.exists(word):
        return place
    beginning = word.removesuffix("…").removesuffix("...")
    if word == LATEST:
        beginning = ""
    parent = Path(os.path.dirname(beginning) or folder)
    run = _newest(parent, os.path.basename(beginning))
    if run:
        return f"{run}{inside}"
    if beginning != word:
        raise RunError(
            f"{word} is not a run, because {parent} holds none of that name yet.",
            next_commands={"train one": ("train", "battlesnake-ppo")},
        )
    return place


def _newest(parent: Path, beginning: str) -> Path | None:
    configs = parent.glob(f"{glob.escape(beginning)}*/{CONFIG}")
    newest = max(configs, key=os.path.getmtime, default=None)
    if newest is None:
        return None
    return newest.parent
