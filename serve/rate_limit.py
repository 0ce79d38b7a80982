"""How many requests a second one address may send."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from envs.errors import ConfigError

_MAX_ADDRESSES = 4096


class RateLimit:
    """A token bucket for each address: `per_second` requests on average, and after a pause `burst` at once (default: two
    seconds' worth, at least 10).

    Knows the 4096 addresses that called last; one that was forgotten begins with a full bucket. Raises `ConfigError` for a
    rate that isn't positive. `clock` counts seconds, never back.
    """

    def __init__(self, per_second: float, *, burst: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        if not (math.isfinite(per_second) and per_second > 0):
            raise ConfigError(f"the rate limit is {per_second}; it must be a positive number of requests a second")
        self._rate, self._clock = per_second, clock
        self._burst = max(10.0, 2 * per_second) if burst is None else burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def allows(self, address: str) -> bool:
        """Take a token from this address's bucket; whether there was one."""
        now = self._clock()
        with self._lock:
            tokens, then = self._buckets.pop(address, (self._burst, now))
            tokens = min(self._burst, tokens + (now - then) * self._rate)
            allowed = tokens >= 1
            self._buckets[address] = (tokens - allowed, now)
            if len(self._buckets) > _MAX_ADDRESSES:
                self._buckets.popitem(last=False)
        return allowed
