"""How long before a game's time-out an answer must leave, learned from what the engine reports."""

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
    """A margin for each game, in milliseconds: 80 until something is known of it.

    An engine tells with each turn how long our last answer took by its clock; less what it took by ours, that is the network
    and whatever waits before and after us: the overhead. The margin is 70 ms + 1.5 x its slowly sinking peak. Reports
    are a stranger's word: what is no plausible number is ignored (so is "0", which stands for the first turn and, in the
    arena, for a time-out), and whatever they say the margin stays within 40..250 ms.

    Remembers `max_games` games, each until nobody has asked for `max_idle_s` seconds. `clock` counts seconds, never back.
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
        """The margin for an answer on `turn`; `reported` is the engine's `you.latency` of this request, unread."""
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
        """Note how long an answer took by our clock, from the request's arrival on."""
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
