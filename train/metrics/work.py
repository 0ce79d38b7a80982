"""What this process is doing within an iteration, for the person who waits for it. Other processes
aren't seen.
"""

from __future__ import annotations

from collections.abc import Iterator

doing = ""
"""E.g. "step 12 of 256"; empty between two pieces of work. The thread that works writes it, and
another one shows it. Where one thread plays while another learns, it says what either of them did
last."""


def counted(what: str, count: int) -> Iterator[int]:
    """Count from 0 to `count` - 1, as `range` does, and say in `doing` which `what` is being worked
    on.
    """
    global doing
    try:
        for k in range(count):
            doing = f"{what} {k + 1} of {count}"
            yield k
    finally:
        doing = ""
