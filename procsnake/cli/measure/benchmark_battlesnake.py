"""The command `procsnake benchmark battlesnake`."""

from __future__ import annotations

import argparse
from importlib import import_module

from envs.common.columns import in_columns
from envs.common.outputs import kept_at, make_place_for
from procsnake.cli.command_line import (
    add_json,
    at_least,
    positive,
    print_json,
    progress_on_stderr,
)

HELP = """\
The contenders train one after the other on the same board, with the same reward and for the same
time. Two of them are baselines: mxnet-dqn is the SageMaker starter pack's DQN as it was, and
mxnet-equal the same DQN with the action mask, the observation and the number of games that the
others have. Both need MXNet (docs/mxnet-dqn.md). Without it, name the other contenders.
The same command continues after an interruption.

examples:
  procsnake benchmark battlesnake --minutes 15 --seeds 3  # 4.5 hours on a quiet machine
  procsnake benchmark battlesnake --minutes 2 --seeds 1 --contenders dqn-1,ppo --out outputs/first
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser.add_argument(
        "--minutes",
        type=positive,
        default=15.0,
        help="minutes per training (default: %(default)g)",
    )
    parser.add_argument(
        "--seeds",
        type=at_least(1),
        default=3,
        help="trainings per contender (default: %(default)s)",
    )
    parser.add_argument(
        "--contenders",
        help=(
            "names separated by commas (default: mxnet-dqn,mxnet-equal,dqn-1,dqn-all,apex,ppo;"
            " also mxnet-own)"
        ),
    )
    parser.add_argument(
        "--out",
        default=kept_at("benchmarks/battlesnake"),
        help="folder for runs and results (default: %(default)s)",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake benchmark battlesnake`. Returns the exit code."""
    from train.comparison.battlesnake_benchmark import USUAL, benchmark, rows_of

    # The trainings are processes of their own; a missing torch is reported before the first one.
    import_module("torch")
    names = options.contenders.split(",") if options.contenders else USUAL
    make_place_for(options.out)
    with progress_on_stderr(options):
        result = benchmark(
            minutes=options.minutes, seeds=options.seeds, out=options.out, contenders=names
        )
    heads, rows = rows_of(result)
    if options.json:
        print_json([dict(zip(heads, row, strict=True)) for row in rows])
        return 0
    for row in rows:
        print(f"\n{row[0]}")
        print(in_columns(zip(heads[1:], row[1:], strict=True), indent="  "))
    print(f"\nwritten: {options.out}/benchmark.html, benchmark.png, benchmark.json")
    return 0
