"""Learns from the engine's reports how long before a game's timeout an answer must leave.

With each turn an engine reports how long our last answer took by its clock (`you.latency`). The
overhead is that time less the time by our own clock: it is the network, and whatever waits before
and after us. Strangers make the reports, so a report only moves the margin of the game that it
names, and an implausible report is ignored.

An engine tells a timeout as 0 (Arena), as the timeout, or as more. A 0 for an answer that took us
a millisecond can't be its latency. So after a timeout the overhead is known to be at least the
timeout less what we used, and then how large it is can only be learned from an answer that
arrives: the next ones are given almost at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

START_MS = 80.0
MIN_MS = 40.0
LEAST_BUDGET_MS = 40.0
"""The margin of a game of which nothing is known, the least margin, and the least that a margin
leaves of a timeout.
"""
REACH_MS = 60.0
"""How much of a timeout a network must leave for our answers to be in time: the least budget, and
time to write and send.
"""
_RESERVE_MS = 70.0
_DECAY = 0.9
_DECAY_WHEN_FAR = 0.99
_CAREFUL_TURNS = 12
_CAREFUL_GROWTH = 8
_MOST_GROWTHS = 4
_OUT_OF_REACH = 3
_LONGEST_REPORT = 60_000
_DIGITS = re.compile(r"[0-9]{1,6}")


@dataclass
class GameMargin:
    """The overhead that one game's engine has shown, and the resulting margin.

    The margin is 80 ms, at most half of the timeout, until something is known. Then it is the peak
    of the overhead plus its spread, or plus 70 ms if that is more. It leaves 40 ms of the timeout
    in any case. The peak sinks and the lowest overhead rises by a tenth per turn towards the newest
    one; in a game that had a timeout the peak sinks by a hundredth.

    After the first timeout that our own clock doesn't explain 12 answers are given within 40 ms,
    after the second 96, and so on. If three such answers in a row were late as well, and no report
    ever was another than 0, the engine is out of reach or doesn't measure; then there is nothing to
    be gained, and the margin is that of the beginning."""

    turn: int = -1
    """The turn that was answered last."""
    took_ms: float = 0.0
    timeouts: int = 0
    """How many timeouts there were, those among answers that were given at once left out."""
    peak_ms: float | None = None
    low_ms: float | None = None
    careful_until: int = 0
    """The turn from which answers take their time again."""
    late_at_once: int = 0
    """How many answers in a row that were given at once came too late."""
    has_measured: bool = False
    """Whether the engine has reported another latency than 0."""
    reported_timeouts: int = 0
    """How many timeouts there were when the owner was told of them last."""

    def margin_ms(self, turn: int, reported: Any, timeout_ms: float) -> float:
        """Return the margin for an answer on `turn`. `reported` is this request's unchecked
        `you.latency`.
        """
        latency_ms = milliseconds(reported)
        if latency_ms is not None and 0 <= self.turn == turn - 1:
            self._learn(turn, latency_ms, timeout_ms)
        longest_ms = max(timeout_ms / 2, timeout_ms - LEAST_BUDGET_MS)
        if self.peak_ms is None or self.is_hopeless:
            return min(START_MS, timeout_ms / 2)
        if turn < self.careful_until:
            return longest_ms
        low_ms = self.peak_ms / 2 if self.low_ms is None else self.low_ms
        return min(longest_ms, max(MIN_MS, self.peak_ms + max(_RESERVE_MS, self.peak_ms - low_ms)))

    def answered(self, turn: int, took_ms: float) -> None:
        """Record how long an answer took by our clock since the request's arrival, in
        milliseconds.
        """
        if turn >= self.turn:
            self.turn = turn
            self.took_ms = took_ms

    @property
    def is_out_of_reach(self) -> bool:
        """Return whether even immediate answers come too late, according to the engine's
        reports.
        """
        return self.late_at_once >= _OUT_OF_REACH

    @property
    def is_hopeless(self) -> bool:
        """Whether nothing is gained by answering sooner."""
        return self.is_out_of_reach and not self.has_measured

    def news(self, turn: int, margin_ms: float, timeout_ms: float) -> str:
        """Return a message for the owner about this game, or "". Each timeout is reported once."""
        if self.timeouts == self.reported_timeouts:
            return ""
        if self.is_out_of_reach:
            text = (
                f"no answer is in time, not even within {REACH_MS:.0f} ms: the way to the engine"
                f" takes more than {timeout_ms - REACH_MS:.0f} of the {timeout_ms:.0f} ms of a"
                " move, or the engine doesn't measure. Only a server nearer to the engine can mend"
                " that"
            )
        elif turn >= self.careful_until:
            text = (
                f"the way to the engine takes up to {self.peak_ms:.0f} of the {timeout_ms:.0f} ms"
                f" of a move; {timeout_ms - margin_ms:.0f} ms are left to think"
            )
        else:
            return ""
        self.reported_timeouts = self.timeouts
        return text

    def _learn(self, turn: int, latency_ms: float, timeout_ms: float) -> None:
        if latency_ms > 0:
            self.has_measured = True
        if latency_ms >= timeout_ms or (latency_ms == 0 and self.took_ms >= 1):
            self._learn_timeout(turn, timeout_ms)
        elif latency_ms > 0:
            self._learn_overhead(max(0.0, latency_ms - self.took_ms))

    def _learn_timeout(self, turn: int, timeout_ms: float) -> None:
        if self.took_ms <= REACH_MS:
            self.late_at_once += 1
        least_ms = timeout_ms - self.took_ms
        if least_ms <= (self.peak_ms or 0.0):
            return  # We were late ourselves.
        self.peak_ms = least_ms
        if turn > self.careful_until:
            growths = min(self.timeouts, _MOST_GROWTHS)
            self.timeouts += 1
            self.careful_until = turn + _CAREFUL_TURNS * _CAREFUL_GROWTH**growths

    def _learn_overhead(self, overhead_ms: float) -> None:
        self.late_at_once = 0
        decay = _DECAY_WHEN_FAR if self.timeouts else _DECAY
        if self.peak_ms is None:
            peak_ms = overhead_ms
        else:
            peak_ms = decay * self.peak_ms + (1 - decay) * overhead_ms
        if self.low_ms is None:
            low_ms = overhead_ms / 2
        else:
            low_ms = _DECAY * self.low_ms + (1 - _DECAY) * overhead_ms
        self.peak_ms = max(overhead_ms, peak_ms)
        self.low_ms = min(overhead_ms, low_ms)


def milliseconds(reported: Any) -> float | None:
    """Return a report as a number from 0 to 60 000, or None if it isn't one. Engines send it as
    text or as a number.
    """
    number: float
    if isinstance(reported, bool):
        return None
    if isinstance(reported, int | float):
        number = reported
    elif isinstance(reported, str) and _DIGITS.fullmatch(reported):
        number = int(reported)
    else:
        return None
    if 0 <= number <= _LONGEST_REPORT:
        return number
    return None
