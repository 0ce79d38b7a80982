"""The command `procsnake benchmark`, with a subcommand for each world."""

from __future__ import annotations

import argparse

from procsnake.cli.command_line import Commands
from procsnake.cli.measure import benchmark_battlesnake, benchmark_procgen

HELP = """\
examples:
  procsnake benchmark battlesnake --minutes 15 --seeds 3  # DQN, APEX, PPO at equal time
  procsnake benchmark procgen --dry-run                   # the plan and its hours
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    command = Commands(parser)
    for name, module, summary in (
        ("battlesnake", benchmark_battlesnake, "Train DQN, APEX and PPO at equal time."),
        ("procgen", benchmark_procgen, "Train and measure games of Procgen by a protocol."),
    ):
        module.add_options(command(name, module.run, summary, module.HELP))
