"""The command `procsnake solo`."""

from __future__ import annotations

import argparse
import sys

from envs.common.errors import ConfigError, ProcsnakeError
from procsnake.cli.command_line import (
    add_game_options,
    add_imports,
    add_json,
    at_least,
    game_settings,
    print_json,
)
from procsnake.cli.effort_options import add_effort, effort_of, tell_own_efforts
from procsnake.cli.measure.evaluate import refuse_other_worlds
from procsnake.cli.worlds import register_worlds

HELP = """\
Each agent plays alone on square boards.

examples:
  procsnake solo flood champion-standard --games 50                # on Arena's three boards
  procsnake solo my_rule.py+flood --boards 11 --max-turns 2000
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("agents", nargs="+", metavar="AGENT", help="agents to measure")
    parser.add_argument(
        "--boards",
        default="7,11,19",
        metavar="SIDES",
        help="sides of the square boards, separated by commas (default: %(default)s, as on Arena)",
    )
    parser.add_argument(
        "--max-turns",
        type=at_least(1),
        default=5000,
        help="turns after which a game ends (default: %(default)s, as on Arena)",
    )
    parser.add_argument(
        "--games", type=at_least(1), default=200, help="games per board (default: %(default)s)"
    )
    add_effort(parser, wall=False)
    add_json(parser)
    add_imports(parser)
    add_game_options(parser, board=False)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake solo`. Returns the exit code."""
    from agents.measure.evaluation.solo import evaluate_solo, table

    for agent in options.agents:
        register_worlds(agent, options.imports)
        refuse_other_worlds(agent)
    sides = options.boards.split(",")
    if not all(side.isdecimal() and len(side) < 3 for side in sides):
        raise ConfigError(
            "--boards takes the sides of square boards separated by commas, such as 7,11,19,"
            f" not {options.boards!r}"
        )
    effort = effort_of(options)
    tell_own_efforts(effort, ((player, player) for player in options.agents))
    options_of_play = {
        "num_games": options.games,
        "settings": game_settings(options),
        "seed": options.seed,
    }
    scores = []
    left_out = list[ProcsnakeError]()
    for agent in map(effort.make, options.agents):
        for side in map(int, sides):
            print(f"… {agent.name} on {side}×{side}", file=sys.stderr)
            try:
                scores += evaluate_solo(
                    agent, [(side, side)], max_turns=options.max_turns, **options_of_play
                )
            except ProcsnakeError as error:
                left_out.append(error)
                print(f"left out {agent.name} on {side}×{side}: {error}", file=sys.stderr)
    if not scores:
        raise left_out[0]
    print_json([score.to_dict() for score in scores]) if options.json else print(table(scores))
    return 0
