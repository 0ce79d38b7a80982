"""The command `procsnake episodes`."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from procsnake.cli.command_line import (
    add_imports,
    add_json,
    add_seed,
    at_least,
    print_json,
)
from procsnake.cli.worlds import register_worlds

HELP = """\
Plays the policy in the world it was trained in, and compares it with random play.

examples:
  procsnake episodes runs/corridor-… --episodes 500
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("policy", metavar="POLICY", help="run folder or policy bundle")
    parser.add_argument(
        "--episodes",
        type=at_least(1),
        default=200,
        help="number of episodes (default: %(default)s)",
    )
    add_seed(parser)
    add_json(parser)
    add_imports(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake episodes`. Returns the exit code."""
    from agents.measure.evaluation import episodes
    from agents.measure.evaluation.record import WorldRecord, policy_of

    register_worlds(options.policy, options.imports)
    bundle = episodes.bundle_of_a_world(options.policy)
    if bundle is None:
        raise ConfigError(
            f"{options.policy} plays Battlesnake. Measure it there:"
            f" {shell_command('evaluate', options.policy)}"
        )
    with closing(episodes.world_of(bundle, num_games=1)) as world:
        if world.evaluation == "levels":
            levels = shell_command("levels", options.policy)
            raise ConfigError(f"{options.policy} plays Procgen. Measure it on levels: {levels}")
    scores = episodes.evaluate(
        bundle, episodes=options.episodes, seed=options.seed, threads=usable_cores()
    )
    (
        print_json([score.to_dict() for score in scores])
        if options.json
        else print(episodes.table(scores))
    )
    run = Path(options.policy)
    if policy := policy_of(run):
        file = WorldRecord(policy=policy, scores=scores).write(run)
        print(
            f"written: {file}; to add it to the run's report: {shell_command('report', run)}",
            file=sys.stderr,
        )
    return 0
