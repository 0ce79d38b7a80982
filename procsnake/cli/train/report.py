"""The command `procsnake report`."""

from __future__ import annotations

import argparse

from envs.common.errors import ConfigError
from envs.common.shell_command import shell_command
from procsnake.cli.command_line import (
    add_json,
    print_json,
    progress_on_stderr,
)

HELP = """\
The report shows curves, causes of death, speed, configuration and versions, and opens without
a network. Each run writes it when it ends.

examples:
  procsnake report runs/battlesnake-ppo-…             # also while the run is training
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `procsnake report`."""
    parser.add_argument("run_folders", metavar="RUN", nargs="+", help="folder of a run")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run `procsnake report`. Returns the exit code."""
    from train.runs.report.page import write_report

    if len(options.run_folders) > 1:
        again = shell_command("plot", *options.run_folders)
        raise ConfigError(
            f"a report describes one run, and here are {len(options.run_folders)}. Their curves in"
            f" one frame: {again}"
        )
    with progress_on_stderr(options):
        files = [write_report(options.run_folders[0])]
    (
        print_json({"written": files})
        if options.json
        else print(f"written: {', '.join(map(str, files))}")
    )
    return 0
