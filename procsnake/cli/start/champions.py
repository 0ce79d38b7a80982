"""The command `procsnake champions`."""

from __future__ import annotations

import argparse

from procsnake.cli.command_line import (
    add_json,
    print_json,
)

HELP = """\
You can use a champion's name wherever a command takes a policy bundle or an agent.

examples:
  procsnake match champion-standard flood flood flood --watch
  procsnake evaluate champion-standard
  procsnake watch champion-starpilot --record film.mp4        # --seed picks the level
  procsnake levels champion-starpilot --levels train,test --episodes 500
"""


def run(options: argparse.Namespace) -> int:
    """Run `procsnake champions`. Returns the exit code."""
    from agents import champions

    print_json(champions.as_json()) if options.json else print(champions.table())
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_json(parser)
