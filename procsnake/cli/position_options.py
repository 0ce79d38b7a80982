"""The options for starting games from a recorded position."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from envs.common.errors import ConfigError
from procsnake.cli.command_line import at_least, refuse_game_options

if TYPE_CHECKING:
    from agents.opened_recording import Position


def add_position(parser: argparse.ArgumentParser) -> None:
    """Add the options for starting games from a position."""
    what = (
        "start from a position: a file with a /move request, or a recorded game with --turn; the"
        " first player is `you`"
    )
    parser.add_argument("--position", metavar="FILE", help=what)
    parser.add_argument(
        "--turn", type=at_least(0), help="with --position: turn of the recorded game"
    )


def chosen_position(options: argparse.Namespace) -> Position | None:
    """Return the options' position, or None. Raises `ConfigError` for options that exclude a
    position.
    """
    if options.position is None:
        if options.turn is not None:
            raise ConfigError(f"--turn is {options.turn}, but it is for --position; leave it out")
        return None
    refuse_game_options(
        options, "new games; with --position, the file has the board and the rules. Leave it out"
    )
    from agents.opened_recording import open_position

    return open_position(options.position, options.turn)
