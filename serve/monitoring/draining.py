"""Reports at `/health` that a server is about to end, so that a proxy stops sending requests while
it still answers.
"""

from __future__ import annotations

import time

DRAINING = "procsnake.draining"
"""Key of an application's `extensions` at which it keeps its `Draining`."""


class Draining:
    """The last `seconds` of a server, during which it still answers. With 0 it ends at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self._over_at: float | None = None

    @property
    def has_begun(self) -> bool:
        return self._over_at is not None

    @property
    def is_over(self) -> bool:
        return self._over_at is not None and time.monotonic() >= self._over_at

    def begin(self) -> None:
        """Begin to drain. A second call ends it at once."""
        rest = 0.0 if self.has_begun else self.seconds
        self._over_at = time.monotonic() + rest
