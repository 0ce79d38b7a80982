"""The command `procsnake compare`, for existing runs."""

from __future__ import annotations

import argparse
import textwrap

from envs.common.columns import in_columns
from envs.common.outputs import kept_at, make_place_for
from procsnake.cli.command_line import add_json, positive, print_json

HELP = """\
Compares the runs' results at equal time, with intervals over seeds, and tests each group of seeds
against the first. `procsnake benchmark battlesnake` trains DQN, APEX and PPO for such a
comparison.

examples:
  procsnake compare runs/*             # the first run's settings are the baseline
  procsnake compare runs/* --x agent_steps --at 1000000 --metrics win_rate
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `procsnake compare`."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folders of runs")
    add_curve_options(parser, "compared")
    parser.add_argument(
        "--at",
        type=positive,
        help="value of --x at which to compare (default: the end of the shortest run)",
    )
    parser.add_argument(
        "--out",
        default=kept_at("compared"),
        help="path of the .html and .json to write (default: %(default)s)",
    )
    add_json(parser)


def add_curve_options(parser: argparse._ActionsContainer, done: str) -> None:
    """Add the options for the metrics and the x axis of several runs, which are `done` (drawn or
    compared).
    """
    usual = "return, length and win rate, or else what the algorithm measures"
    parser.add_argument(
        "--metrics", help=f"columns of progress.csv, separated by commas (default: {usual})"
    )
    axes = ("minutes", "agent_steps", "env_steps")
    parser.add_argument(
        "--x",
        choices=axes,
        default="minutes",
        help=f"x axis along which runs are {done} (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Run `procsnake compare`. Returns the exit code."""
    from train.comparison.run_comparison import (
        EXPLAINED,
        compare_runs,
        heading,
        rows_of,
        write_comparison,
    )
    from train.runs.curves.plot import apart

    metrics = options.metrics.split(",") if options.metrics else ()
    comparison = compare_runs(options.runs, metrics, by=options.x, at=options.at)
    make_place_for(options.out)
    files = write_comparison(comparison, options.out)
    if options.json:
        print_json(comparison.to_dict())
        return 0
    heads, rows = rows_of(comparison)
    print(f"{heading(comparison)}\n")
    print(in_columns(rows, heads))
    if differences := apart(comparison.groups):
        print(f"\n{differences}")
    print(f"\n{textwrap.fill(EXPLAINED, 110)}\nwritten: {', '.join(map(str, files))}")
    return 0
