"""A bucket an address: so many at once, so many a second, and no more addresses than fit."""

from __future__ import annotations

import pytest

from envs.errors import ConfigError
from serve.rate_limit import RateLimit


def test_a_burst_then_the_rate():
    now = [0.0]
    limit = RateLimit(5, burst=3, clock=lambda: now[0])
    assert [limit.allows("a") for _ in range(4)] == [True, True, True, False]
    assert limit.allows("b")
    allowed = 0
    for tick in range(1, 1001):
        now[0] = tick / 100
        allowed += limit.allows("a")
    assert allowed == pytest.approx(50, abs=1)
    now[0] = 1000.0
    assert [limit.allows("a") for _ in range(4)] == [True, True, True, False]


def test_addresses_are_forgotten():
    limit = RateLimit(1)
    for number in range(10_000):
        limit.allows(str(number))
    assert len(limit) == 4096


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ConfigError, match="positive"):
        RateLimit(rate)
