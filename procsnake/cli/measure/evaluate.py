"""The command `procsnake evaluate`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from envs.common.terminal import Progress
from procsnake.cli.command_line import (
    add_game_options,
    add_imports,
    add_json,
    at_least,
    game_settings,
    print_json,
)
from procsnake.cli.effort_options import add_effort, effort_of, tell_own_efforts
from procsnake.cli.position_options import add_position, chosen_position
from procsnake.cli.worlds import register_worlds

if TYPE_CHECKING:
    from agents.agent import Agent
    from agents.measure.evaluation import MatchupScore
    from agents.opened_recording import Position

_SEATS = 4
"""Snakes in a game of `evaluate` against one opponent, unless it says how many."""
_GAMES = 200
HELP = """\
An agent is a built-in one (random, greedy, flood), a run folder, or a policy bundle (folder, zip
or hf://user/name). For policies of other worlds, use `procsnake levels` (Procgen) or `procsnake
episodes`.

examples:
  # against three of each built-in agent, and in duels
  procsnake evaluate runs/battlesnake-ppo-…
  procsnake evaluate flood --against greedy --games 1000
  procsnake evaluate RUN --against greedy --num-snakes 2 --ruleset wrapped
  # both search for 5 ms of processor time per move
  procsnake evaluate mcts --against alphabeta --num-snakes 2 --time 5
"""
_SEATS = 4
"""Snakes in a game against one opponent, unless it says how many."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("agent", help="agent to measure")
    parser.add_argument(
        "--against",
        help="opponent in all other seats (default: three of each built-in agent, then one)",
    )
    parser.add_argument(
        "--num-snakes",
        type=at_least(2),
        help=f"with --against: snakes per game (default: {_SEATS})",
    )
    parser.add_argument(
        "--games", type=at_least(1), default=200, help="games per match-up (default: %(default)s)"
    )
    add_effort(parser, wall=False)
    add_position(parser)
    add_json(parser)
    add_imports(parser)
    add_game_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake evaluate`. Returns the exit code."""
    from agents.measure.evaluation import evaluate, opponents_text, table

    if options.num_snakes and not options.against:
        raise ConfigError(
            f"--num-snakes {options.num_snakes} needs an opponent; leave it out, or add one:"
            " --against flood"
        )
    players = list(filter(None, (options.agent, options.against)))
    for player in players:
        register_worlds(player, options.imports)
    refuse_other_worlds(options.agent)
    position = chosen_position(options)
    effort = effort_of(options)
    tell_own_efforts(effort, ((player, player) for player in players))
    agent, *against = map(effort.make, players)
    with Progress(lines=False) as progress:

        def tell(turn: int, over: int) -> None:
            progress.show(f"turn {turn}, {over} of {options.games} games over")

        scores = evaluate(
            agent,
            _opponents(against, options.num_snakes, position),
            num_games=options.games,
            width=options.width,
            height=options.height,
            settings=game_settings(options),
            seed=options.seed,
            on_score=lambda score: print(f"… {opponents_text(score.opponents)}", file=sys.stderr),
            on_turn=None if options.json else tell,
            position=None if position is None else position.state,
        )
    print_json([score.to_dict() for score in scores]) if options.json else print(table(scores))
    if not options.against and position is None:
        _keep_scores(Path(options.agent), scores, options)
    return 0


def refuse_other_worlds(agent: str) -> None:
    """Raise `ConfigError` if `agent` is a policy of another world than Battlesnake.

    The message has the command to type instead.
    """
    from agents.measure.evaluation.episodes import bundle_of_a_world, world_of

    bundle = bundle_of_a_world(agent)
    if bundle is None:
        return
    with closing(world_of(bundle, num_games=1)) as world:
        command = "levels" if world.evaluation == "levels" else "episodes"
    raise ConfigError(
        f"{agent} plays {bundle.card.environment['name']}, not Battlesnake. Measure it there:"
        f" {shell_command(command, agent)}"
    )


def _opponents(
    against: Sequence[Agent], num_snakes: int | None, position: Position | None
) -> Sequence[Sequence[str | Agent]]:
    """The groups that the agent meets: at a position, there are as many others as it has."""
    from agents.measure.evaluation import STANDARD_OPPONENTS

    if position is None:
        if against:
            return [list(against) * ((num_snakes or _SEATS) - 1)]
        return STANDARD_OPPONENTS
    others = len(position.names) - 1
    if num_snakes or not others:
        raise ConfigError(f"the position already has {others + 1} snakes; leave out --num-snakes")
    names = dict.fromkeys(name for group in STANDARD_OPPONENTS for name in group)
    if against:
        return [list(against) * others]
    return [[name] * others for name in names]


def _keep_scores(run: Path, scores: Sequence[MatchupScore], options: argparse.Namespace) -> None:
    """A run is measured against all built-in opponents: its report shall say what came of it."""
    from agents.measure.evaluation.record import EvaluationRecord, board_of, policy_of

    policy = policy_of(run)
    if policy is None:
        return
    board = board_of(options.width, options.height, game_settings(options))
    file = EvaluationRecord(policy=policy, games=options.games, scores=scores, board=board).write(
        run
    )
    print(
        f"written: {file}; to add it to the run's report: {shell_command('report', run)}",
        file=sys.stderr,
    )
