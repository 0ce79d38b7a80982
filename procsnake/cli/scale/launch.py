"""The command `procsnake launch`: an experiment on other machines, one command per engine."""

from __future__ import annotations

import argparse

from procsnake.cli.command_line import Commands
from procsnake.cli.scale import launch_sagemaker
from procsnake.cli.scale.launch_engines import add_engines

HELP = """\
examples:
  procsnake launch sagemaker battlesnake-ppo --instances ml.c5.4xlarge --explain
  procsnake launch slurm battlesnake-ppo --instances '2*16cpu' --explain
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    add = Commands(parser)
    summary = "Train on SageMaker, which costs money."
    launch_sagemaker.add_options(
        add("sagemaker", launch_sagemaker.run, summary, launch_sagemaker.HELP)
    )
    add_engines(add)
