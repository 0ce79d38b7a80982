"""Keeps env runners playing, and holds references to their fragments until they are learned from.
It never reads a fragment.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import Any

from ray import ObjectRef
from ray.rllib.utils.actor_manager import FaultTolerantActorManager

PLAY = "play"
"""The tag of requests to play."""


@dataclass(frozen=True)
class Played:
    """A fragment that waits in Ray's object store, on the machine that played it."""

    references: list[ObjectRef]
    """One for each process that learns; each is of a list with its part of the fragment."""
    version: int
    """The number of the weights that played it."""


def by_learner(fragments: list[Played]) -> list[ObjectRef]:
    """Return all references, those for the first learner first, so that equal shares give each
    learner its part.
    """
    of_learners = zip(*(fragment.references for fragment in fragments), strict=True)
    return list(itertools.chain.from_iterable(of_learners))


class FragmentFlow:
    """Asks env runners for fragments while fewer than `most` are being played or waiting.

    So each is at most `most` fragments old when it is learned from. Env runners take turns if
    there is no room for all."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: deque[Played] = deque()
        self._next = 0

    def ask(self, actors: FaultTolerantActorManager, method: str, arguments: dict[str, Any]) -> int:
        """Ask env runners to call `method(**arguments)`. Returns how many were asked."""
        room = self.most - len(self.waiting) - actors.num_outstanding_async_reqs(PLAY)
        numbers = actors.healthy_actor_ids()
        if room <= 0 or not numbers:
            return 0
        first = self._next % len(numbers)
        next_ones = (numbers[first:] + numbers[:first])[:room]
        # Those that have as many requests as they may are left out, so the turn passes them, too.
        self._next = first + len(next_ones)
        return actors.foreach_actor_async(
            method, tag=PLAY, kwargs=arguments, remote_actor_ids=next_ones
        )

    def take(self, count: int) -> list[Played]:
        """Return the `count` fragments that have waited longest."""
        return [self.waiting.popleft() for _ in range(count)]
