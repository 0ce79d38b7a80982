"""Learns from the engine's reports how long before a game's time-out an answer must leave."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

START_MS, MIN_MS, MAX_MS = 80.0, 40.0, 250.0
_JITTER_MS, _SAFETY, _DECAY = 70.0, 1.5, 0.9
_LONGEST_REPORT = 60_000


@dataclass
class _Memory:
    turn: int
    took_ms: float
    seen: float
    overhead_ms: float | None = None


class Margins:
    """The margin of each game, in milliseconds. It is 80 until something is known of the game.

    With each turn an engine reports how long our last answer took by its clock. The overhead is that time less the time by our
    own clock: it is the network, and whatever waits before and after us. The margin is 70 ms + 1.5 x the overhead's slowly
    sinking peak. Strangers make the reports, so a report that is no plausible number is ignored; so is "0", which stands for
    the first turn and, in the arena, for a time-out. Whatever is reported, the margin stays within 40..250 ms.

    `max_games` games are remembered, each until nobody has asked for it for `max_idle_s` seconds. `clock` counts seconds,
    never back.
    """

    def __init__(
        self, *, max_games: int = 1024, max_idle_s: float = 600.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_games, self._max_idle_s, self._clock = max_games, max_idle_s, clock
        self._games: OrderedDict[tuple[str, str], _Memory] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._games)

    def margin_ms(self, game: tuple[str, str], turn: int, reported: Any) -> float:
        """Return the margin for an answer on `turn`. `reported` is the engine's `you.latency` of this request, unchecked."""
        latency = _milliseconds(reported)
        with self._lock:
            memory = self._games.get(game)
            if memory is None:
                return START_MS
            if latency and memory.turn == turn - 1:
                overhead = max(0.0, latency - memory.took_ms)
                before = memory.overhead_ms or 0.0
                memory.overhead_ms = max(overhead, _DECAY * before + (1 - _DECAY) * overhead)
            if memory.overhead_ms is None:
                return START_MS
            return min(MAX_MS, max(MIN_MS, _JITTER_MS + _SAFETY * memory.overhead_ms))

    def answered(self, game: tuple[str, str], turn: int, took_ms: float) -> None:
        """Note how long an answer took by our clock since the request's arrival, in milliseconds."""
        now = self._clock()
        with self._lock:
            memory = self._games.setdefault(game, _Memory(turn, took_ms, now))
            if turn >= memory.turn:
                memory.turn, memory.took_ms = turn, took_ms
            memory.seen = now
            self._games.move_to_end(game)
            while len(self._games) > self._max_games or next(iter(self._games.values())).seen < now - self._max_idle_s:
                self._games.popitem(last=False)


def _milliseconds(reported: Any) -> int:
    """A report as a number, 0 for none."""
    text = reported if isinstance(reported, str) else ""
    number = int(text) if len(text) <= 6 and text.isascii() and text.isdigit() else 0
    return number if number <= _LONGEST_REPORT else 0
