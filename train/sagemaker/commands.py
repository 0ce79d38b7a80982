"""The commands `procsnake launch` and `procsnake job`."""

from __future__ import annotations

from envs.common.command_line import Commands
from train.sagemaker import job_command, launch_command


def add_commands(command: Commands) -> None:
    """Add the two commands."""
    launch_command.add_command(command)
    job_command.add_command(command)
