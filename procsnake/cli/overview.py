"""What `procsnake --help` shows: all commands in groups, none of them imported."""

from __future__ import annotations

import argparse
import platform
from typing import Any

from envs.common.shell_command import shell_command
from procsnake.cli.command_line import Parser
from procsnake.cli.commands import COMMANDS, GROUPS

_DESCRIPTION = "Train agents for Battlesnake and Procgen, measure them, and compete with them."


class ShowVersions(argparse.Action):
    """Prints the versions that a bug report needs. They are looked up only when they are asked
    for.
    """

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from agents.card import library_versions

        libraries = " ".join(f"{name} {version}" for name, version in library_versions().items())
        print(f"{libraries} python {platform.python_version()} {platform.platform()}")
        parser.exit()


class OverviewParser(Parser):
    """The parser of `procsnake` itself."""

    def __init__(self) -> None:
        super().__init__(prog="procsnake", description=_DESCRIPTION)
        self.add_argument(
            "--version",
            action=ShowVersions,
            nargs=0,
            help="show procsnake's version and its libraries', and exit",
        )

    def format_help(self) -> str:
        """Return the commands by group."""
        width = max(map(len, COMMANDS))
        lines = ["usage: procsnake [-h] [--version] COMMAND ...", "", _DESCRIPTION]
        for title, commands in GROUPS.items():
            lines += ["", f"{title}:"]
            lines += [f"  {one.name:<{width}}  {one.summary}" for one in commands]
        quickstart = shell_command("quickstart")
        lines += ["", f"Start with: {quickstart}. Each command's --help has examples."]
        return "\n".join(lines) + "\n"
