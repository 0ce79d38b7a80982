"""The command `procsnake plot`: the curves of runs in one chart, with one line per experiment."""

from __future__ import annotations

import argparse

from envs.common.outputs import kept_at, make_place_for
from procsnake.cli.command_line import add_json, print_json, progress_on_stderr
from procsnake.cli.measure.compare import add_curve_options

HELP = """\
Runs that differ only in their seed become one line: their mean, with a confidence band. The
page also has a table of the final values, and opens without a network.

examples:
  procsnake plot runs/*  # return, length and win rate over minutes
  procsnake plot runs/* --metrics win_rate --x agent_steps --out outputs/wins
"""
INTERVALS = ("bootstrap", "student", "none")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `procsnake plot`."""
    parser.add_argument("run_folders", metavar="RUN", nargs="+", help="folder of a run")
    add_json(parser)
    curves = parser.add_argument_group("curves")
    add_curve_options(curves, "drawn")
    interval_help = (
        "95 %% band over seeds: by bootstrap, by Student's t, or none (default: %(default)s)"
    )
    curves.add_argument("--interval", choices=INTERVALS, default="bootstrap", help=interval_help)
    curves.add_argument(
        "--out",
        default=kept_at("curves"),
        help="path of the .html and .png to write (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Run `procsnake plot`. Returns the exit code."""
    from train.runs.curves.plot import write_curves

    with progress_on_stderr(options):
        make_place_for(options.out)
        metrics = options.metrics.split(",") if options.metrics else ()
        write_curves(
            options.run_folders, options.out, metrics, by=options.x, interval=options.interval
        )
    files = [f"{options.out}.html", f"{options.out}.png"]
    print_json({"written": files}) if options.json else print(f"written: {', '.join(files)}")
    return 0
