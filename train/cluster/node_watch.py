"""Watches the processes of this machine's Ray node. If one of them dies, everything here would wait
for it forever.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from train.cluster.memory import evidence, oom_kills

_PROCESSES = ("raylet", "gcs_server")
_PROC = Path("/proc")


@dataclass(frozen=True)
class NodeWatch:
    """The processes of a node that has just been started at an address."""

    processes: tuple[tuple[str, Path, str], ...]
    """Name, folder in /proc and time of start of each. The time tells a process from a later one
    with the same number.
    """
    kills_before: int | None

    @classmethod
    def of(cls, address: str) -> NodeWatch:
        """Find the node's processes. Without /proc none are found, and nothing is watched."""
        processes = []
        for folder in _PROC.glob("[0-9]*"):
            name = _name(folder)
            began = _began(folder)
            if name in _PROCESSES and began and _is_at(folder, address):
                processes.append((name, folder, began))
        return cls(tuple(processes), oom_kills())

    def died(self) -> str:
        """Return a sentence that names the processes that have died; "" as long as all live."""
        dead = [name for name, folder, began in self.processes if _began(folder) != began]
        if not dead:
            return ""
        return (
            f"Ray's {' and '.join(sorted(dead))} on this machine died"
            f" ({evidence(self.kills_before)})"
        )


def is_running() -> bool:
    """Return whether this user has a node of Ray on this machine. Without /proc it is False."""
    return any(
        _name(folder) in _PROCESSES and _began(folder) and _is_own(folder)
        for folder in _PROC.glob("[0-9]*")
    )


def _is_own(folder: Path) -> bool:
    try:
        return folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def _name(folder: Path) -> str:
    try:
        return (folder / "comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _is_at(folder: Path, address: str) -> bool:
    """Whether an argument of a process of Ray is this address, by which nodes on the same machine
    differ.
    """
    try:
        arguments = (folder / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(argument.endswith(f"={address}".encode()) for argument in arguments)


def _began(folder: Path) -> str:
    """The time at which a process was started; empty if there is none, or if it is a zombie."""
    try:
        fields = os.fsdecode((folder / "stat").read_bytes()).rpartition(")")[2].split()
    except OSError:
        return ""
    state = fields[0]
    if state in "ZX":
        return ""
    return fields[19]
