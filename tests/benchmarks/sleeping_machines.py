"""Machines whose env runners sleep instead of playing, and send fragments of true size. One process
stands for many of them.

Nothing here imports torch or RLlib, so that these processes start in a second. What the main
process gets from them is what it gets from true ones: `Packed` turns into it on arrival."""

from __future__ import annotations

import pickle
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ray


class Packed:
    """A pickled object with its arrays apart. Whoever unpickles it has the object itself."""

    def __init__(self, thing: Any) -> None:
        buffers: list[Any] = []
        self.head = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
        self.arrays = [np.frombuffer(bytes(buffer.raw()), np.uint8) for buffer in buffers]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpacked, (self.head, self.arrays)


class Told:
    """What an env runner tells of a fragment. On arrival it is a `Played`."""

    def __init__(self, references: list[Any]) -> None:
        self.references = references

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _played, (self.references,)


class Machines:
    """An actor with a thread for each of many env runners: `apply` is what RLlib's actor manager
    calls.
    """

    def __init__(self, fragment: Packed, metrics: Packed, *, seconds: float) -> None:
        self.fragment = fragment
        self.metrics = metrics
        self.seconds = seconds

    def apply(self, func: Callable[..., Any], **arguments: Any) -> Any:
        return func(self, **arguments)

    def play(self) -> tuple[Any, Any]:
        """As `BatchEnvRunner.play`, but it sleeps."""
        self._sleep()
        return self.fragment, self.metrics

    def play_ahead(self, parts: int, source: Any) -> tuple[Any, Any]:
        """As `APPORunner.play_ahead`, but it sleeps."""
        self._sleep()
        return Told([ray.put([self.fragment]) for _ in range(parts)]), self.metrics

    def set_state(self, state: Any) -> None:
        """Take weights, and do nothing with them."""

    def _sleep(self) -> None:
        # No two fragments take equally long: the slowest of many takes half as long again.
        time.sleep(self.seconds * random.uniform(0.5, 1.5))


class Learner:
    """An actor that learns in no time. It fetches its experience, as a true one does."""

    def update(self, experience: list[Any]) -> int:
        """Return how many fragments it got, as themselves or by reference."""
        return len(ray.get(experience) if isinstance(experience[0], ray.ObjectRef) else experience)


def _unpacked(head: bytes, arrays: list[np.ndarray]) -> Any:
    return pickle.loads(head, buffers=arrays)


def _played(references: list[Any]) -> Any:
    from train.rllib.fragment_flow import Played

    return Played(references, version=0)
