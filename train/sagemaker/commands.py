"""The commands `procsnake launch`, `procsnake job` and `procsnake image`."""

from __future__ import annotations

from envs.common.command_line import Commands
from train.sagemaker import image_command, job_command, launch_command


def add_commands(command: Commands) -> None:
    """Add the three commands."""
    launch_command.add_command(command)
    job_command.add_command(command)
    image_command.add_command(command)
