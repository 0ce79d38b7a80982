"""The options that limit what agents spend on a move."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from agents.effort import ONE_LIMIT, Effort
from envs.common.errors import ConfigError
from envs.common.strangers.printable import printable
from procsnake.cli.command_line import at_least, positive


def add_effort(parser: argparse.ArgumentParser, *, wall: bool = True) -> None:
    """Add the options that limit what agents spend on a move."""
    parser.add_argument("--nodes", type=at_least(1), help="nodes per move, for agents that search")
    time = "processor time per move, for agents that search"
    parser.add_argument("--time", "--cpu-ms", type=positive, metavar="MS", help=time)
    if wall:
        parser.add_argument(
            "--wall",
            action="store_true",
            help="--time is wall-clock time; results then depend on load and don't repeat",
        )


def effort_of(options: argparse.Namespace) -> Effort:
    """Return the effort that the options of `add_effort` describe, without a wall-clock limit,
    which is the timeout.

    Raises `ConfigError` for options that don't go together.
    """
    wall = getattr(options, "wall", False)
    if wall and options.time is None:
        raise ConfigError("--wall says what --time is; say how long: --time MS --wall")
    if wall and options.nodes is not None:
        raise ConfigError(ONE_LIMIT)
    return Effort(nodes=options.nodes, cpu_ms=None if wall else options.time)


def tell_own_efforts(effort: Effort, players: Iterable[tuple[str, str]]) -> None:
    """Print on stderr which of these players, (name, spec), the requested effort doesn't apply
    to.
    """
    if exceptions := effort.exceptions_in_words(players):
        print(f"note: {printable(exceptions)}", file=sys.stderr)
