"""The command `procsnake compare`: of runs that are there, and of the contenders that it trains
first.
"""

from __future__ import annotations

import argparse
import os
import textwrap
from importlib import import_module
from pathlib import Path

from envs.common.columns import in_columns
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.outputs import kept_at, make_place_for
from procsnake.cli.command_line import (
    add_json,
    at_least,
    positive,
    print_json,
    progress_on_stderr,
)

WORLD = "battlesnake"
HELP = """\
Runs that are there are compared at equal time: what they had reached, with intervals over
seeds, and a test of each group of seeds against the first group. The word battlesnake in their
place trains: the same board, reward and time for the SageMaker starter pack's DQN, DQN on one
core and on all, APEX and PPO, one after the other. Finished seeds are not run again: the same
command goes on where it was stopped. The starter pack's DQN needs MXNet, for which
docs/mxnet-dqn.md makes an environment of its own; the others can be compared without it.

examples:
  procsnake compare runs/*             # which settings are better? the first run's are the baseline
  procsnake compare runs/* --x agent_steps --at 1000000 --metrics win_rate
  procsnake compare battlesnake --minutes 15 --seeds 3  # four hours on a quiet machine
  procsnake compare battlesnake --minutes 2 --seeds 1 --contenders mxnet-dqn,ppo --out outputs/first
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `procsnake compare`."""
    add_json(parser)
    parser.add_argument(
        "compared",
        metavar="RUN|battlesnake",
        nargs="+",
        help="folders of runs; or battlesnake: train and compare",
    )
    runs = parser.add_argument_group("of runs")
    add_curve_options(runs, "compared")
    runs.add_argument(
        "--at", type=positive, help="at this many of --x (default: where the shortest run ends)"
    )
    world = parser.add_argument_group("of battlesnake")
    world.add_argument("--minutes", type=float, help="minutes of training each (default: 15)")
    world.add_argument("--seeds", type=at_least(1), help="trainings of each (default: 3)")
    contenders = "names with commas (default: mxnet-dqn,dqn-1,dqn-all,apex,ppo; also mxnet-own)"
    world.add_argument("--contenders", help=contenders)
    out = (
        "for runs: where .html and .json are written (default: outputs/compared); for battlesnake:"
        " folder of runs and results"
    )
    parser.add_argument("--out", help=f"{out} (default: outputs/comparisons/battlesnake)")


def add_curve_options(parser: argparse._ArgumentGroup, done: str) -> None:
    """Add the options that say what of several runs is `done`, and along what."""
    usual = "return, length, win rate; for algorithms without them what those measure"
    parser.add_argument(
        "--metrics", help=f"columns of progress.csv, with commas (default: {usual})"
    )
    axes = ("minutes", "agent_steps", "env_steps")
    parser.add_argument(
        "--x",
        choices=axes,
        default="minutes",
        help=f"what they are {done} along (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Run `procsnake compare`. Returns the exit code."""
    contest = options.compared == [WORLD]
    of_others = ("metrics", "at") if contest else ("minutes", "seeds", "contenders")
    if surplus := [f"--{name}" for name in of_others if getattr(options, name) is not None]:
        raise ConfigError(
            f"{', '.join(surplus)} is for the comparison of {'runs' if contest else 'battlesnake'},"
            " not of this"
        )
    if contest:
        return _compare_contenders(options)
    first = Path(options.compared[0])
    if len(options.compared) == 1 and len(first.parts) == 1 and not os.path.exists(first):
        raise UnknownNameError("world", options.compared[0], [WORLD])
    return _compare_runs(options)


def _compare_runs(options: argparse.Namespace) -> int:
    from train.comparison.run_comparison import (
        EXPLAINED,
        compare_runs,
        heading,
        rows_of,
        write_comparison,
    )
    from train.runs.curves.plot import apart

    out = options.out or kept_at("compared")
    metrics = options.metrics.split(",") if options.metrics else ()
    comparison = compare_runs(options.compared, metrics, by=options.x, at=options.at)
    make_place_for(out)
    files = write_comparison(comparison, out)
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


def _compare_contenders(options: argparse.Namespace) -> int:
    from train.comparison.compare import USUAL, compare, rows_of

    # The trainings are processes of their own; what they would lack is said before the first one.
    import_module("torch")
    names = options.contenders.split(",") if options.contenders else USUAL
    out = options.out or kept_at("comparisons/battlesnake")
    make_place_for(out)
    minutes = 15.0 if options.minutes is None else options.minutes
    seeds = options.seeds or 3
    with progress_on_stderr(options):
        comparison = compare(minutes=minutes, seeds=seeds, out=out, contenders=names)
    heads, rows = rows_of(comparison)
    if options.json:
        print_json([dict(zip(heads, row, strict=True)) for row in rows])
        return 0
    for row in rows:
        print(f"\n{row[0]}")
        print(in_columns(zip(heads[1:], row[1:], strict=True), indent="  "))
    print(f"\nwritten: {out}/comparison.html, comparison.png, comparison.json")
    return 0
