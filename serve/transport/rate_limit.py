"""Limits how many requests per second one address may send, and how many new games are kept."""

from __future__ import annotations

import ipaddress
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from envs.common.errors import ConfigError
from serve.monitoring.logs import Seldom

log = logging.getLogger(__name__)

GAMES_PER_ADDRESS = (2.0, 100)
GAMES_IN_ALL = (10.0, 500)
"""How many new games are kept: (per second, at once), from one address and from all together."""
_MAX_ADDRESSES = 4096
_MAX_GAMES = 8192


def caller_of(address: str) -> str:
    """Return a key for all addresses of one caller: the /64 of an IPv6 address, because its owner
    controls all of it.

    An IPv4 address, even if written as IPv6, is its own key, and so is any other text."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(parsed) >> 64 << 64))


class RateLimit:
    """A token bucket for each caller. It allows `per_second` requests on average, and after a pause
    `burst` requests at once.

    `burst` is by default two seconds' worth, but at least 10. Each process counts for itself, so W
    workers allow up to W times as many requests (see `NewGames`). The 4096 latest callers are
    remembered; a forgotten one starts with a full bucket. Addresses with the same `caller_of` are
    one caller. `clock` counts seconds, never back. Raises `ConfigError` for a rate that isn't
    positive."""

    def __init__(
        self,
        per_second: float,
        *,
        burst: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (math.isfinite(per_second) and per_second > 0):
            raise ConfigError(
                f"the rate limit is {per_second}; it must be a positive number of requests per"
                " second"
            )
        self._rate = per_second
        self._clock = clock
        self._burst = burst if burst is not None else max(10.0, 2 * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def allows(self, address: str) -> bool:
        """Take a token from this address's bucket, and return whether there was one."""
        now = self._clock()
        address = caller_of(address)
        with self._lock:
            tokens, then = self._buckets.pop(address, (self._burst, now))
            tokens = min(self._burst, tokens + (now - then) * self._rate)
            allowed = tokens >= 1
            self._buckets[address] = (tokens - allowed, now)
            if len(self._buckets) > _MAX_ADDRESSES:
                self._buckets.popitem(last=False)
        return allowed


class NewGames:
    """Decides which games are recorded. Anybody can start games by making up ids, so a rate limits
    how much they can fill.

    A game beyond `GAMES_PER_ADDRESS` or `GAMES_IN_ALL` is played like any other, but not recorded.
    Each worker process counts for itself, so W of them keep up to W times as many. If the rate were
    divided among them, a caller with a single connection, which belongs to one worker, would get
    only a part of it. The 8192 games that were asked about last are remembered. `clock` counts
    seconds, never back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._seldom = Seldom(clock=clock)
        self._of_address = RateLimit(GAMES_PER_ADDRESS[0], burst=GAMES_PER_ADDRESS[1], clock=clock)
        self._of_all = RateLimit(GAMES_IN_ALL[0], burst=GAMES_IN_ALL[1], clock=clock)
        self._games: OrderedDict[Hashable, bool] = OrderedDict()
        self._lock = threading.Lock()

    def keeps(self, game: Hashable, address: str) -> bool:
        """Return whether a game is kept, given the address from which a request about it comes."""
        with self._lock:
            is_kept = self._games.pop(game, None)
            if is_kept is None:
                is_kept = self._of_address.allows(address) and self._of_all.allows("")
                if not is_kept and self._seldom.allows("too fast"):
                    log.warning("games begin too fast: some are played but not kept")
            self._games[game] = is_kept
            if len(self._games) > _MAX_GAMES:
                self._games.popitem(last=False)
        return is_kept
