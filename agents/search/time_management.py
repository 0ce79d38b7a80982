"""A search's time limits, and its reusable arrays."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from envs.battlesnake.state import State

MOST_IDLE = 8
MIN_CPU_MS = 0.1
MAX_CPU_MS = 3_600_000.0
MAX_NODES = 1 << 40
MAX_NEAR = 1000
"""More moves than there are between any two cells."""
_CHUNK = 1000
"""The nodes between two looks at the clock, about a millisecond of search."""
_FEW_NODES = 200
"""What a search gets at least of the rest of a budget."""
T = TypeVar("T")


class SearchLimits:
    """Limits on nodes, on `time.monotonic()` and on the `time.thread_time()` of the thread that
    asks. None means no limit.

    The first limit that is reached ends the search.
    """

    def __init__(
        self, nodes: int | None, deadline: float | None, cpu_due: float | None = None
    ) -> None:
        self.nodes = nodes
        self.deadline = deadline
        self.cpu_due = cpu_due

    def is_spent(self, nodes: int) -> bool:
        """Return whether a search must end after this many nodes."""
        if self.nodes is not None and nodes >= self.nodes:
            return True
        if self.cpu_due is not None and time.thread_time() >= self.cpu_due:
            return True
        return self.deadline is not None and time.monotonic() >= self.deadline

    def end(self) -> None:
        """End the search at its next look at the clock. Any thread may call this."""
        self.deadline = -math.inf

    def pause(self, nodes: int) -> int:
        """Return the number of nodes at which to ask again."""
        if self.deadline is None and self.cpu_due is None:
            ahead = self.nodes
        else:
            ahead = nodes + _CHUNK
        assert ahead is not None
        return ahead if self.nodes is None else min(ahead, self.nodes)


class Remainder:
    """The rest of a search's limits, to be given to other searches in parts."""

    def __init__(self, limits: SearchLimits, nodes: int) -> None:
        """`nodes` is how many the search has visited."""
        self._limits = limits
        self._nodes = None if limits.nodes is None else limits.nodes - nodes
        self._nodes_used = 0
        self._start = time.monotonic()
        self._cpu_start = time.thread_time()

    def up_to(self, share: float) -> SearchLimits:
        """Return limits that end a search when this share of the remainder, 0..1, has been spent in
        total.
        """
        nodes = None
        if self._nodes is not None:
            nodes = max(_FEW_NODES, int(share * self._nodes) - self._nodes_used)
        deadline = None
        if self._limits.deadline is not None:
            deadline = self._start + share * (self._limits.deadline - self._start)
        cpu_end = None
        if self._limits.cpu_due is not None:
            cpu_end = self._cpu_start + share * (self._limits.cpu_due - self._cpu_start)
        return SearchLimits(nodes, deadline, cpu_end)

    def use(self, nodes: int) -> None:
        """Subtract the nodes that such a search used."""
        self._nodes_used += nodes


class WorkspacePool(Generic[T]):
    """Keeps workspaces for the next search on a board of the same shape. Searches that run at the
    same time have one each.

    The shape is that of the arrays, so it includes the length of the body rings. At most `most`
    unused workspaces are kept; beyond that, the least recently used are dropped. The limit is
    needed because requests can choose among millions of board shapes."""

    def __init__(self, make: Callable[[State], T], *, most: int = MOST_IDLE) -> None:
        self._make = make
        self._most = most
        self._idle: list[tuple[tuple[int, ...], T]] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._idle)

    @contextmanager
    def borrow(self, state: State) -> Iterator[T]:
        """Lend an unused workspace. It still contains the data of its last search."""
        shape = (state.width, state.height, *state.arrays.body.shape[1:])
        with self._lock:
            space = self._take(shape)
        if space is None:
            space = self._make(state)
        yield space
        with self._lock:
            self._idle.append((shape, space))
            del self._idle[: -self._most]

    def _take(self, shape: tuple[int, ...]) -> T | None:
        """Take the workspace of this shape that was used last out of the pool; None if there is
        none.
        """
        for place in reversed(range(len(self._idle))):
            if self._idle[place][0] == shape:
                return self._idle.pop(place)[1]
        return None


def cpu_due(cpu_ms: float | None) -> float | None:
    """Return what `time.thread_time()` will be when this thread has spent `cpu_ms` milliseconds of
    processor time from now on; None without a limit.
    """
    if cpu_ms is None:
        return None
    return time.thread_time() + cpu_ms / 1000
