"""The command `procsnake warm-up`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from envs.common.columns import in_columns
from procsnake.cli.command_line import add_json, print_json
from serve.warm_up import Compiled, compile_parts, parts_of

HELP = """\
Whatever is compiled is kept in ~/.cache/procsnake, or where the environment variable
PROCSNAKE_CACHE says.

examples:
  procsnake warm-up           # all built-in players, and the world in which trainers train
  # what these players need to play and to be served, as images do
  procsnake warm-up flood snake.zip
  procsnake warm-up training  # what trainers need, as an image for training does
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command `procsnake warm-up`."""
    parser.add_argument(
        "players",
        nargs="*",
        metavar="player",
        help="names or bundles, or the word training (default: all that there is)",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake warm-up`. Returns the exit code."""
    done = compile_parts(
        parts_of(options.players),
        lambda text: print(f"compiling {text}", file=sys.stderr, flush=True),
    )
    if options.json:
        print_json([asdict(one) for one in done])
        return 0
    print(in_columns((one.name, _told(one)) for one in done))
    return 0


def _told(one: Compiled) -> str:
    if one.functions:
        return f"{one.functions} functions compiled in {one.seconds:.1f} s"
    return "all was compiled before"
