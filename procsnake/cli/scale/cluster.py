"""`procsnake cluster`."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

HELP = """\
The machines need ssh without a password, and procsnake installed at the same path. An existing
Ray cluster doesn't need this command: use `procsnake train --cluster`.

examples:
  procsnake cluster up gpu-box cpu-1 cpu-2                    # gpu-box is the head
  procsnake cluster up gpu-box --rollout cpu-1 cpu-2          # gpu-box only learns
  procsnake cluster up gpu-box cpu-1 --print                  # show the commands, and exit
  procsnake cluster down gpu-box cpu-1 cpu-2
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser.add_argument("action", choices=["up", "down"])
    parser.add_argument(
        "machines", nargs="+", metavar="MACHINE", help="host or user@host; the first is the head"
    )
    parser.add_argument(
        "--rollout",
        nargs="+",
        default=[],
        metavar="MACHINE",
        help="machines that collect experience; the others only learn",
    )
    parser.add_argument(
        "--python", default="python3", help="Python on the machines (default: %(default)s)"
    )
    parser.add_argument(
        "--head-address",
        help="address at which the other machines reach the head, if it has several",
    )
    parser.add_argument(
        "--ssh-option", action="append", default=[], metavar="KEY=VALUE", help="option for ssh -o"
    )
    parser.add_argument("--print", action="store_true", help="show the commands, and exit")


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
