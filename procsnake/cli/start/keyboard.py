"""The command `procsnake keyboard`: a person plays Procgen in a window."""

from __future__ import annotations

import argparse

from procsnake.cli.command_line import add_seed

HELP = """\
examples:
  procsnake keyboard procgen/coinrun
  procsnake keyboard procgen/starpilot --levels train:200 --seed 3
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("game", metavar="GAME", help="a game of Procgen, such as procgen/coinrun")
    parser.add_argument(
        "--levels",
        default="all",
        help="all, train:N, test:N or start:num (default: %(default)s)",
    )
    parser.add_argument("--mode", default="easy", help="distribution mode (default: %(default)s)")
    add_seed(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake keyboard`. Returns the exit code."""
    from envs.procgen import keyboard

    print(keyboard.KEYS)
    keyboard.play(
        options.game.removeprefix("procgen/"),
        seed=options.seed,
        levels=options.levels,
        distribution_mode=options.mode,
    )
    return 0
