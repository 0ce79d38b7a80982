"""The conditions of `procsnake tune-search`'s games and tests."""

from __future__ import annotations

import argparse
from typing import Any

from procsnake.cli.command_line import add_game_options, at_least, game_settings
from procsnake.cli.effort_options import add_effort

GAME = (
    "snakes",
    "width",
    "height",
    "ruleset",
    "map",
    "food_spawn_chance",
    "minimum_food",
    "hazard_damage_per_turn",
    "shrink_every_n_turns",
    "opening_turns",
    "max_turns",
)
"""The options that say which games are played; a file of options keeps them."""
_SAME_IN_THE_TEST = ("nodes", "time", *GAME)
"""The options that `sprt` and `tune-search accept` take as well.

The seed isn't among them: a test has other starts.
"""


def add_opening_and_length(parser: argparse.ArgumentParser) -> None:
    """Add the options for a game's opening and turn limit."""
    parser.add_argument(
        "--opening-turns",
        type=at_least(0),
        default=4,
        help="random turns at the start (default: %(default)s)",
    )
    parser.add_argument(
        "--max-turns", type=at_least(1), default=5000, help="turns after which a game is drawn"
    )


def add_conditions(parser: argparse.ArgumentParser) -> None:
    """Add the options under which games are played."""
    add_effort(parser, wall=False)
    add_opening_and_length(parser)
    parser.add_argument(
        "--snakes",
        type=int,
        default=2,
        help="snakes per game, 2 or 4 (default: %(default)s)",
    )
    add_game_options(parser)


def conditions(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a `Match` for a tuning's games and for its acceptance test."""
    return {
        "seats": options.snakes,
        "nodes": options.nodes,
        "cpu_ms": options.time,
        "opening_turns": options.opening_turns,
        "width": options.width,
        "height": options.height,
        "settings": game_settings(options),
        "seed": options.seed,
        "max_turns": options.max_turns,
    }


def same_games(options: argparse.Namespace) -> list[str]:
    """Return the non-default options with which a test plays the same games as the tuning."""
    defaults = argparse.ArgumentParser()
    add_conditions(defaults)
    chosen = {name: getattr(options, name) for name in _SAME_IN_THE_TEST if hasattr(options, name)}
    return [
        f"{flag(name)}={value}"
        for name, value in chosen.items()
        if value != defaults.get_default(name)
    ]


def flag(name: str) -> str:
    """Return the option that sets the condition `name`."""
    return f"--{name.replace('_', '-')}"
