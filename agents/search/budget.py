"""How long a search may take, and the memory that it takes meanwhile."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from envs.battlesnake.state import State
from envs.errors import ConfigError

# About a millisecond of search between two looks at the clock.
_CHUNK = 1000
T = TypeVar("T")


class Budget:
    """So many nodes, or until a `time.monotonic()`, whichever comes first; None is no limit."""

    def __init__(self, nodes: int | None, deadline: float | None) -> None:
        self.nodes, self.deadline = nodes, deadline

    def spent(self, nodes: int) -> bool:
        """Whether the search that has seen so many nodes must end."""
        if self.nodes is not None and nodes >= self.nodes:
            return True
        return self.deadline is not None and time.monotonic() >= self.deadline

    def end(self) -> None:
        """Have it spent from now on, whoever asks; from any thread."""
        self.deadline = -math.inf

    def pause(self, nodes: int) -> int:
        """The number of nodes at which to ask again."""
        ahead = nodes + _CHUNK if self.deadline is not None else self.nodes
        assert ahead is not None
        return ahead if self.nodes is None else min(ahead, self.nodes)


class WorkspacePool(Generic[T]):
    """Workspaces by the shape of the board, one for each search that runs at the same time, kept for the next."""

    def __init__(self, make: Callable[[State], T]) -> None:
        self._make = make
        self._idle: dict[tuple[int, int, int], list[T]] = {}

    @contextmanager
    def borrow(self, state: State) -> Iterator[T]:
        """A workspace that nobody else uses. Its contents are whatever the last search left."""
        idle = self._idle.setdefault((state.width, state.height, state.num_snakes), [])
        try:
            space = idle.pop()
        except IndexError:
            space = self._make(state)
        yield space
        idle.append(space)


def check_range(name: str, value: float | None, low: float, high: float) -> None:
    """Raises `ConfigError` unless value is None or lies in low..high."""
    if value is not None and not low <= value <= high:
        raise ConfigError(f"{name} is {value!r}; it must be from {low} to {high}")
