"""Finds out how many cores this process may use. In a container these may be fewer than the machine
has.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path, PurePosixPath

MAX_THREADS = 256
"""The most threads that a world may be told to use. Where the system refuses more, Procgen's
library ends the process.
"""
_GROUPS = Path("/sys/fs/cgroup")
_OURS = Path("/proc/self/cgroup")


def usable_cores() -> int:
    """Return how many cores this process may keep busy, by its affinity and by the quotas of its
    control groups; at least 1.

    Control groups of version 1 and 2 count, our own and those around it. Source: docs.kernel.org,
    cgroup-v2 and sched-bwc."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(quota) for quota in _quotas())]))


def _quotas() -> Iterator[float]:
    for folder in _folders():
        with suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) / int(period)
        with suppress(OSError, ValueError):
            quota, period = (
                (folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
            )
            if int(quota) > 0:
                yield int(quota) / int(period)


def _folders() -> Iterator[Path]:
    """Yield the folders with the limits of our control groups, and of those around them.

    A container may see its own group as the root.
    """
    yield from (_GROUPS, _GROUPS / "cpu")
    with suppress(OSError):
        for line in _OURS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            inside = PurePosixPath(path).relative_to("/")
            mounts = (controllers, "cpu") if controllers else ("", "unified")
            for group, mount in product((inside, *inside.parents), mounts):
                yield _GROUPS / mount / group
