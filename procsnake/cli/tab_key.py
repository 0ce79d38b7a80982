"""Answers the shell when the Tab key is pressed: the commands, options and names that fit.

The script from `procsnake completion` makes the shell call `procsnake` with the typed line in the
environment. The answer must be quick, so nothing here imports torch, Ray or Numba."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from argcomplete.completers import FilesCompleter
from argcomplete.finders import CompletionFinder

from procsnake.cli.command_line import Commands
from procsnake.cli.commands import COMMANDS
from procsnake.cli.overview import OverviewParser


def complete(*, end: Callable[[int], object] = os._exit, output: TextIO | None = None) -> None:
    """Write the completions to `output`, by default where the shell expects them, and end the
    process.
    """
    finder = CompletionFinder()
    finder(
        _parser_of_line(),
        always_complete_options=False,
        default_completer=NamesOrFiles(),
        exit_method=end,
        output_stream=output,
    )


def _parser_of_line() -> argparse.ArgumentParser:
    """Return a parser that knows all commands by name, and the options of the one on the line."""
    line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
    finished_words = line.split(" ")[1:-1]
    command = next((word for word in finished_words if word and not word.startswith("-")), "")
    parser = OverviewParser()
    add = Commands(parser)
    for one in COMMANDS.values():
        if one.name == command:
            one.add_to(add)
        else:
            add(one.name, None, one.summary, "")
    return parser


class NamesOrFiles(FilesCompleter):
    """Completes an argument by its possible names, or else by files."""

    def __call__(self, prefix: str, **context: Any) -> list[str]:
        """Return what begins with `prefix` for the argument `context["action"]`."""
        names = NAMES.get(context["action"].dest)
        if names is not None:
            folder = getattr(context["parsed_args"], "runs", None) or "runs"
            fitting = [name for name in names(folder) if name.startswith(prefix)]
            if fitting:
                return fitting
        return list(super().__call__(prefix, **context))


def _runs(folder: str) -> list[str]:
    configs = glob.glob(f"{glob.escape(folder)}/*/config.yaml")
    return sorted(map(os.path.dirname, configs))


def _experiments(_: str) -> list[str]:
    from train.config import list_experiments

    return list_experiments()


def _policies(folder: str) -> list[str]:
    from agents import champions

    return [*champions.names(), *_runs(folder)]


def _players(folder: str) -> list[str]:
    from agents import registry

    return [*registry.names(), *_runs(folder)]


def _worlds(_: str) -> list[str]:
    import envs

    return envs.names()


def _games_of_procgen(folder: str) -> list[str]:
    return [name for name in _worlds(folder) if name.startswith("procgen/")]


def _maps(_: str) -> list[str]:
    from envs.battlesnake.settings import OFFICIAL_MAPS

    return list(OFFICIAL_MAPS)


def _rulesets(_: str) -> list[str]:
    from envs.battlesnake.settings import RULESETS

    return list(RULESETS)


NAMES: Mapping[str, Callable[[str], list[str]]] = {
    "against": _players,
    "agent": _players,
    "agents": _players,
    "bundle": _policies,
    "experiment": _experiments,
    "game": _games_of_procgen,
    "hint": _players,
    "init_from": _policies,
    "map": _maps,
    "player": _players,
    "players": _players,
    "policies": _policies,
    "policy": _policies,
    "resume": _runs,
    "ruleset": _rulesets,
    "run_folders": _runs,
    "source": lambda folder: [*_runs(folder), *_experiments(folder)],
    "world": lambda folder: [*_worlds(folder), *_policies(folder)],
}
"""The names that may stand for an argument, by its place in the parsed options. They are called
with the folder of runs.
"""
