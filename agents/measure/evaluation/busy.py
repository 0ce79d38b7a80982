"""Finds out whether an answer was late because this machine was busy rather than because the snake
was slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_STAT = Path("/proc/stat")
_STOLEN = 7
_CLEARLY = 0.25
"""The share of the timeout, or of the machine's time, that only a busy machine loses."""


class LoadMeter:
    """Measures how much time the machine loses from the meter's creation on, for instance while
    waiting for a turn's answers.
    """

    def __init__(self) -> None:
        self._before = _processor_time()

    def stolen(self) -> float:
        """Return the share of all processors' time, 0..1, that other guests of the host have taken,
        or 0 if it isn't known.
        """
        before, stolen_before = self._before
        now, stolen_now = _processor_time()
        if now > before:
            return (stolen_now - stolen_before) / (now - before)
        return 0.0

    def burst(
        self, *, timeout_ms: float, latencies_ms: Mapping[str, float], waited_ms: float = 0.0
    ) -> str:
        """Return what shows that the machine was busy while these servers were asked, or "" if
        nothing does.

        `latencies_ms` has the latency of each server (host and port). `waited_ms` is how long the
        agents of this process waited for a processor while they decided."""
        slowest = max(latencies_ms.values(), default=0.0)
        if len(latencies_ms) > 1 and min(latencies_ms.values()) >= timeout_ms:
            return f"all {len(latencies_ms)} servers were late on the same turn"
        if slowest - timeout_ms >= _CLEARLY * timeout_ms:
            return (
                f"this process woke {slowest - timeout_ms:.0f} ms after a timeout of"
                f" {timeout_ms:.0f} ms"
            )
        if waited_ms >= _CLEARLY * timeout_ms:
            return f"the agents here waited {waited_ms:.0f} ms for a processor"
        share = self.stolen()
        if share >= _CLEARLY:
            return f"{share:.0%} of the processors' time was stolen"
        return ""


def _processor_time() -> tuple[int, int]:
    """The time of all processors since the machine started, and how much of it was stolen, in
    ticks. Source: proc_stat(5).
    """
    with suppress(OSError, ValueError, IndexError):
        first_line = _STAT.read_text(encoding="ascii").partition("\n")[0]
        ticks = [int(word) for word in first_line.split()[1:]]
        # The columns after the stolen time repeat time that is in the first ones already.
        return sum(ticks[: _STOLEN + 1]), ticks[_STOLEN]
    return 0, 0
