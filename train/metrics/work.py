"""Says what this process is doing within an iteration, for a waiting user. Other processes aren't
included.
"""

from __future__ import annotations

from collections.abc import Iterator

doing = ""
"""The current piece of work, e.g. "step 12 of 256"; empty between two pieces. The thread that works
writes it, and another one shows it. Where one thread plays while another learns, it is the latest
of either."""


def counted(name: str, count: int) -> Iterator[int]:
    """Yield 0 to `count` - 1, as `range` does, and say so in `doing`: "`name` 1 of `count`"."""
    global doing
    try:
        for k in range(count):
            doing = f"{name} {k + 1} of {count}"
            yield k
    finally:
        doing = ""
