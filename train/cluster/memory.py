"""Looks for evidence that a process was killed because the machine, or its container, ran out of
memory.
"""

from __future__ import annotations

import re
from pathlib import Path

_COUNTERS = (
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
    Path("/proc/vmstat"),
)
"""The files in which Linux counts processes that it killed for lack of memory: of the container, by
version 2 and 1 of control groups, and of the machine.
"""
_KIB_A_GIB = 2**20


def oom_kills() -> int | None:
    """Return how many processes the kernel has killed for lack of memory; None if unknown."""
    for path in _COUNTERS:
        if match := re.search(r"^oom_kill (\d+)$", _text(path), re.MULTILINE):
            return int(match[1])
    return None


def evidence(kills_before: int | None) -> str:
    """Return a clause that says whether memory has run out since `oom_kills` returned
    `kills_before`.
    """
    kills = oom_kills()
    if kills is not None and kills_before is not None and kills > kills_before:
        return (
            f"out of memory: the kernel has killed {kills - kills_before} of its processes for that"
        )
    clause = "out of memory? the kernel has counted no such kill"
    if kills is None:
        clause = "out of memory? nothing here shows whether the kernel killed it"
    match = re.search(r"^MemAvailable: +(\d+) kB$", _text(Path("/proc/meminfo")), re.MULTILINE)
    if match:
        clause += f"; {int(match[1]) / _KIB_A_GIB:.1f} GiB are free now"
    return clause


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
