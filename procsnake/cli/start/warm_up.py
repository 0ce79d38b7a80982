"""The command `procsnake warm-up`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from envs.common.columns import in_columns
from procsnake.cli.command_line import add_json, print_json
from serve.warm_up import Compiled, compile_parts, parts_of

HELP = """\
Compiled code is kept in ~/.cache/procsnake, or in the folder that the environment variable
PROCSNAKE_CACHE names.

examples:
  procsnake warm-up           # all built-in players, and training
  procsnake warm-up flood snake.zip   # what these players need, for a serving image
  procsnake warm-up training          # what trainers need, for a training image
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command `procsnake warm-up`."""
    parser.add_argument(
        "players",
        nargs="*",
        metavar="player",
        help="players to compile for, or the word training (default: everything)",
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
