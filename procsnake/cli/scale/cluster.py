"""`procsnake cluster`."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

HELP = """\
For a few machines of your own that ssh reaches without a password and that have procsnake
installed at the same place. For other clusters of Ray this isn't needed; procsnake train
--cluster works on them.

examples:
  procsnake cluster up gpu-box cpu-1 cpu-2                    # the first one leads
  procsnake cluster up gpu-box --rollout cpu-1 cpu-2          # gpu-box learns, the others play
  procsnake cluster up gpu-box cpu-1 --print                  # show the commands, and end
  procsnake cluster down gpu-box cpu-1 cpu-2
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser.add_argument("action", choices=["up", "down"])
    parser.add_argument(
        "machines", nargs="+", metavar="MACHINE", help="host or user@host; the first one leads"
    )
    parser.add_argument(
        "--rollout",
        nargs="+",
        default=[],
        metavar="MACHINE",
        help="machines that play; the others only learn",
    )
    parser.add_argument(
        "--python", default="python3", help="Python on the machines (default: %(default)s)"
    )
    parser.add_argument(
        "--head-address",
        help="the address of the first machine that the others use, if it has several",
    )
    parser.add_argument(
        "--ssh-option", action="append", default=[], metavar="KEY=VALUE", help="as after ssh -o"
    )
    parser.add_argument("--print", action="store_true", help="show the commands, and end")


def run(options: argparse.Namespace) -> int:
    """Run `procsnake cluster`. Returns the exit code."""
    from train.cluster import ssh

    machines = ssh.Machines(
        head=options.machines[0],
        workers=options.machines[1:],
        rollout=options.rollout,
        python=options.python,
        head_address=options.head_address,
        ssh_options=[part for option in options.ssh_option for part in ("-o", option)],
    )
    if options.print:
        print("\n".join(map(shlex.join, _commands(machines, options.action))))
        return 0
    if options.action == "down":
        ssh.down(machines, print)
        return 0
    head = ssh.up(machines, print)
    print(f"the cluster is up at {head}; train on its first machine:")
    train = [machines.python, "-m", "procsnake", "train", "battlesnake-apex", "--cluster", "auto"]
    print(f"  {shlex.join(['ssh', *machines.ssh_options, machines.head, *train])}")
    return 0


def _commands(machines: Any, action: str) -> list[list[str]]:
    from train.cluster import ssh

    if action == "down":
        return [ssh.stop_command(machines, machine) for machine, _ in reversed(machines.groups())]
    commands = [
        ssh.start_command(machines, machine, group, "HEAD_ADDRESS")
        for machine, group in machines.groups()[1:]
    ]
    head, group = machines.groups()[0]
    return [ssh.start_command(machines, head, group, ""), *commands]
