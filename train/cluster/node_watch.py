"""Watches the processes of this machine's Ray node. If one of them dies, everything that runs here
waits for it in vain.
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
    """Name, folder in /proc and time of start of each. The time tells a process from a later one of
    the same number.
    """
    kills_before: int | None

    @classmethod
    def of(cls, address: str) -> NodeWatch:
        """Find the node's processes. Where there is no /proc, there are none, and nothing is
        watched.
        """
        found = []
        for folder in _PROC.glob("[0-9]*"):
            name = _name(folder)
            began = _began(folder)
            if name in _PROCESSES and began and _is_at(folder, address):
                found.append((name, folder, began))
        return cls(tuple(found), oom_kills())

    def died(self) -> str:
        """Return a sentence that names the processes that have died; an empty text as long as all
        live.
        """
        dead = [name for name, folder, began in self.processes if _began(folder) != began]
        if not dead:
            return ""
        return (
            f"Ray's {' and '.join(sorted(dead))} on this machine died"
            f" ({evidence(self.kills_before)})"
        )


def is_running() -> bool:
    """Whether this user has a node of Ray on this machine. Where there is no /proc, the answer is
    no.
    """
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
    """Whether a process of Ray was given this address, by which nodes on the same machine
    differ.
    """
    try:
        return any(
            part.endswith(f"={address}".encode())
            for part in (folder / "cmdline").read_bytes().split(b"\0")
        )
    except OSError:
        return False


def _began(folder: Path) -> str:
    """When a process was started; empty if there is none, or if it only waits to be buried."""
    try:
        fields = os.fsdecode((folder / "stat").read_bytes()).rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
