"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(
    condition: Callable[[], Any],
    *,
    seconds: float = 20,
    told: Callable[[], str] = lambda: "it never happened",
) -> Any:
    """What `condition` returns once that is true. Fails the test, with what `told` says, if it
    takes longer.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, told()
        # What takes long needn't be asked so often: it may cost a process each time.
        time.sleep(min(0.1, seconds / 1000))
    return found
