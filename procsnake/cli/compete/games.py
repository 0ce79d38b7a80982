"""The command `procsnake games`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from envs.common.columns import in_columns
from envs.common.outputs import kept_at
from envs.common.strangers.printable import printable
from procsnake.cli.command_line import (
    Commands,
    add_json,
    print_json,
)
from procsnake.cli.database_option import add_database
from serve.archive.option import without_password

if TYPE_CHECKING:
    from serve.archive.reader import GameArchive


HELP = """\
examples:
  procsnake games list
  procsnake games export games/
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    add = Commands(parser)
    for command in (
        add(
            "list",
            lambda options: _on_archive(_list, options),
            "List the games.",
            "examples:\n  procsnake games list --snake flood\n",
        ),
        _with_directory(
            add(
                "export",
                lambda options: _on_archive(_export, options),
                "Export finished games as recordings.",
                "examples:\n  procsnake games export games/\n",
            )
        ),
    ):
        command.add_argument("--snake", help="only games of this snake")
        add_json(command)
        add_database(command)


def _with_directory(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "directory",
        nargs="?",
        default=kept_at("games"),
        help="folder to write (default: %(default)s)",
    )
    return parser


def _on_archive(
    act: Callable[[GameArchive, argparse.Namespace], int], options: argparse.Namespace
) -> int:
    """Open the archive and act on it. Returns the exit code."""
    from serve.archive.reader import GameArchive, GamesUnavailableError

    with closing(GameArchive(options.database)) as archive:
        if not archive.exists:
            raise GamesUnavailableError(
                f"there is no {options.database}; name the database of procsnake serve with"
                " --database"
            )
        return act(archive, options)


def _list(archive: GameArchive, options: argparse.Namespace) -> int:
    if options.json:
        print_json(
            [game for game in archive.every_game() if options.snake in (None, game["snake"])]
        )
        return 0
    rows = [
        _listed(game) for game in archive.every_game() if options.snake in (None, game["snake"])
    ]
    if rows:
        print(in_columns(rows, ("began", "snake", "result", "turns", "cause", "game")))
    else:
        whose = "" if options.snake is None else f" of the snake {options.snake!r}"
        print(
            printable(f"{without_password(options.database)} has no games{whose}"), file=sys.stderr
        )
    return 0


def _export(archive: GameArchive, options: argparse.Namespace) -> int:
    """Returns 1 if games had to be left out."""
    left_out: list[str] = []

    def leave_out(summary: str) -> None:
        left_out.append(summary)
        print(summary, file=sys.stderr, flush=True)

    count = sum(
        1 for _ in archive.export(options.directory, snake=options.snake, leave_out=leave_out)
    )
    if options.json:
        print_json({"games": count, "directory": options.directory, "left_out": left_out})
    else:
        summary = f"{count} game{'s' * (count != 1)} exported to {options.directory}"
        print(summary + (f", {len(left_out)} left out" if left_out else ""))
    return 1 if left_out else 0


def _listed(game: Mapping[str, Any]) -> tuple[str, ...]:
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(game["started"]))
    how = "being played" if game["ended"] is None else game["result"] or "over"
    if game["is_check"]:
        # The doctor asks for single moves, too, and such games have no end.
        how = "check"
    return began, game["snake"], how, str(game["turns"]), game["cause"] or "", game["id"]
