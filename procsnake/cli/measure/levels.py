"""The command `procsnake levels`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from envs.common.cores import usable_cores
from envs.common.whole_files import make_folder_of
from procsnake.cli.command_line import (
    add_imports,
    add_json,
    add_seed,
    at_least,
    print_json,
)
from procsnake.cli.worlds import register_worlds

HELP = """\
Measures policies on unseen levels (test) or on those of training (train), and compares them with
the random agent. For several runs it adds the interquartile mean and the optimality gap.

examples:
  procsnake levels runs/procgen-ppo-… --levels train,test --episodes 500
  procsnake levels champion-starpilot
  procsnake levels runs/a runs/b runs/c --report all.html        # with aggregates
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "policies", nargs="+", metavar="POLICY", help="run folders, policy bundles or champions"
    )
    parser.add_argument(
        "--levels",
        default="test",
        help="train, test, start:num, or several separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--episodes",
        type=at_least(1),
        default=200,
        help="number of episodes (default: %(default)s)",
    )
    parser.add_argument(
        "--greedy", action="store_true", help="play the likeliest action instead of sampling"
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="page with curves and films (default: RUN/evaluation.html)",
    )
    add_seed(parser)
    add_json(parser)
    add_imports(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake levels`. Returns the exit code."""
    from agents.measure.evaluation.procgen import aggregates_by_split, evaluate, table

    for policy in options.policies:
        register_worlds(policy, options.imports)
    runs = [Path(agent) for agent in options.policies]
    one_run = runs[0] if len(runs) == 1 and (runs[0] / "bundle").is_dir() else None
    report = one_run and one_run / "evaluation.html"
    if options.report:
        report = Path(options.report)
    if report:
        make_folder_of(report)
    results = evaluate(
        options.policies,
        levels=options.levels,
        episodes=options.episodes,
        seed=options.seed,
        greedy=options.greedy,
        threads=usable_cores(),
        say=None if options.json else lambda line: print(line, file=sys.stderr),
    )
    scores = [one.score for one in results]
    if options.json:
        together = {
            split: [one.to_dict() for one in own]
            for split, own in aggregates_by_split(scores).items()
        }
        print_json({"scores": [score.to_dict() for score in scores], "together": together})
    else:
        print(table(scores))
    if report:
        from agents.measure.evaluation.procgen_report import write_evaluation

        curve = one_run / "progress.csv" if one_run else None
        write_evaluation(report, ", ".join(run.name for run in runs), results, curve)
        print(f"written: {report}", file=sys.stderr if options.json else sys.stdout)
    return 0
