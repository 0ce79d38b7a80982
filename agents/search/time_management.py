"""How long a search may take, and the arrays that it works in."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Generic, TypeVar

from envs.battlesnake.state import State
from envs.common.errors import ConfigError

# About a millisecond of search between two looks at the clock.
_CHUNK = 1000
MOST_IDLE = 8
MIN_CPU_MS = 0.1
MAX_CPU_MS = 3_600_000.0
MAX_NEAR = 1000
"""More moves than there are between any two cells."""
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

    def spent(self, nodes: int) -> bool:
        """Whether a search that has visited this many nodes must end."""
        if self.nodes is not None and nodes >= self.nodes:
            return True
        if self.cpu_due is not None and time.thread_time() >= self.cpu_due:
            return True
        return self.deadline is not None and time.monotonic() >= self.deadline

    def end(self) -> None:
        """Declare the budget spent, for everybody who asks from now on. Any thread may call
        this.
        """
        self.deadline = -math.inf

    def pause(self, nodes: int) -> int:
        """Return the number of nodes at which to ask again."""
        if self.deadline is None and self.cpu_due is None:
            ahead = self.nodes
        else:
            ahead = nodes + _CHUNK
        assert ahead is not None
        return ahead if self.nodes is None else min(ahead, self.nodes)


class WorkspacePool(Generic[T]):
    """Keeps workspaces for the next search on a board of the same shape. Searches that run at the
    same time have one each.

    The shape is that of the arrays, so it includes the length of the body rings. At most `most`
    unused workspaces are kept; beyond that, those that were used longest ago are dropped. The limit
    is needed because strangers choose the shapes of boards, of which there are millions."""

    def __init__(self, make: Callable[[State], T], *, most: int = MOST_IDLE) -> None:
        self._make = make
        self._most = most
        self._idle: list[tuple[tuple[int, ...], T]] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._idle)

    @contextmanager
    def borrow(self, state: State) -> Iterator[T]:
        """Lend a workspace that nobody else uses. It still has what the last search left in it."""
        shape = (state.width, state.height, *state.arrays.body.shape[1:])
        with self._lock:
            place = next(
                (n for n in reversed(range(len(self._idle))) if self._idle[n][0] == shape), None
            )
            space = None if place is None else self._idle.pop(place)[1]
        if space is None:
            space = self._make(state)
        yield space
        with self._lock:
            self._idle.append((shape, space))
            del self._idle[: -self._most]


def cpu_due(cpu_ms: float | None) -> float | None:
    """The `time.thread_time()` of this thread so many milliseconds of its processor time from
    now.
    """
    if cpu_ms is None:
        return None
    return time.thread_time() + cpu_ms / 1000


def check_range(
    name: str, value: float | None, low: float, high: float, *, whole: bool = True
) -> None:
    """Raises `ConfigError` unless value is None or a number in low..high, with `whole` a whole one.
    It may be of any type.
    """
    if value is None:
        return
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral if whole else Real)
        or not low <= value <= high
    ):
        raise ConfigError(
            f"{name} is {value!r}; it must be a {'whole ' if whole else ''}number from {low} to"
            f" {high}"
        )
