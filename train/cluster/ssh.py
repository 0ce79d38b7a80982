"""Starts and stops a Ray cluster of a few plain machines over ssh.

procsnake must be installed at the same place on each.
"""

from __future__ import annotations

import secrets
import shlex
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from train.cluster.hosts import ClusterError
from train.cluster.node import RUNS_ALREADY
from train.settings.scale import ALL, LEARNER, ROLLOUT

_SECONDS = 240.0


class RunsAlready(ClusterError):
    """A machine has a node of Ray already."""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The machines of a cluster, by names that ssh takes: host, user@host, or a name in
    ~/.ssh/config.
    """

    head: str
    """The machine that leads. Training is started on it."""
    workers: Sequence[str] = ()
    """Machines that also play and learn."""
    rollout: Sequence[str] = ()
    """Machines that only play. If there are any, the others only learn."""
    python: str = "python3"
    """The Python on each machine for which procsnake is installed."""
    head_address: str | None = None
    """The address at which the others reach the head, if it has several."""
    ssh_options: Sequence[str] = field(default_factory=tuple)

    def groups(self) -> list[tuple[str, str]]:
        """Return (machine, its group) for all machines, the head first."""
        learning = LEARNER if self.rollout else ALL
        groups = [(machine, learning) for machine in (self.head, *self.workers)]
        return groups + [(machine, ROLLOUT) for machine in self.rollout]


def up(machines: Machines, say: Callable[[str], None]) -> str:
    """Start Ray on all machines, the head first, with a fresh token. Returns the head's address.

    Raises `ClusterError`, which names the machine that failed. Machines that were started before it
    are stopped again, after Ctrl-C too. What already ran on a machine is left as it is."""
    token = secrets.token_hex(32)
    started = []
    head = ""
    try:
        for machine, group in machines.groups():
            started.append(machine)
            address = call(start_command(machines, machine, group, head), token, machine)
            say(f"{machine}: {group}, at {address}")
            head = head or address
    except BaseException as error:
        if isinstance(error, RunsAlready):
            started.pop()
        for machine in started:
            # The first error is the one to report.
            with suppress(ClusterError):
                call(stop_command(machines, machine), "", machine)
        raise
    return head


def down(machines: Machines, say: Callable[[str], None]) -> None:
    """Stop Ray on all machines, the head last.

    Raises `ClusterError` at the end, with the names of machines that could not be reached."""
    failed = []
    for machine, _ in reversed(machines.groups()):
        try:
            call(stop_command(machines, machine), "", machine)
            say(f"{machine}: stopped")
        except ClusterError as error:
            failed.append(str(error))
    if failed:
        raise ClusterError("; ".join(failed))


def start_command(machines: Machines, machine: str, group: str, head: str) -> list[str]:
    """Return ssh's arguments to start the node of `machine`. `head` is the head's address, empty if
    it is the head itself.
    """
    arguments = ["start", "--group", group]
    if head:
        arguments += ["--head", head]
    elif machines.head_address:
        arguments += ["--address", machines.head_address]
    return _ssh(machines, machine, arguments)


def stop_command(machines: Machines, machine: str) -> list[str]:
    """Return ssh's arguments to stop the node of `machine`."""
    return _ssh(machines, machine, ["stop"])


def call(command: Sequence[str], stdin: str, machine: str) -> str:
    """Run a command and return its last line of output. Raises `ClusterError` with its output if it
    fails.
    """
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise ClusterError("there is no ssh on this machine; install openssh-client") from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{machine} did not answer within {_SECONDS:.0f} s") from None
    if done.returncode:
        output = " ".join((done.stderr or done.stdout).split())
        reason = output[-400:] or f"exit code {done.returncode}"
        if done.returncode == RUNS_ALREADY:
            raise RunsAlready(f"{machine}: {reason}")
        raise ClusterError(f"{machine}: {reason}. Try it by hand: {shlex.join(command[:-1])} true")
    return (done.stdout.splitlines() or [""])[-1]


def _ssh(machines: Machines, machine: str, arguments: Sequence[str]) -> list[str]:
    # A name that begins with a hyphen would be an option.
    if machine.startswith("-"):
        raise ClusterError(f"{machine!r} is not the name of a machine")
    remote = shlex.join([machines.python, "-m", "train.cluster.node", *arguments])
    options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=15", *machines.ssh_options]
    return ["ssh", *options, machine, remote]
