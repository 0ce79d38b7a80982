"""A bucket an address: so many at once, so many a second, and no more addresses than fit."""

from __future__ import annotations

import pytest

from envs.common.errors import ConfigError
from serve.transport.rate_limit import NewGames, RateLimit


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


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2", True),
    ],
)
def test_a_network_of_ipv6_is_one_address(one, other, is_same):
    limit = RateLimit(1, burst=1, clock=lambda: 0.0)
    assert limit.allows(one)
    assert limit.allows(other) != is_same


def test_addresses_are_forgotten():
    limit = RateLimit(1)
    for number in range(10_000):
        limit.allows(str(number))
    assert len(limit) == 4096


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ConfigError, match="positive"):
        RateLimit(rate)


def test_new_games_are_kept_at_a_rate_of_one_address_and_of_all(caplog):
    now = [0.0]
    games = NewGames(clock=lambda: now[0])
    begun = [games.keeps(number, "a") for number in range(1000)]
    assert begun == [True] * 100 + [False] * 900
    assert caplog.text.count("games begin too fast") == 1
    # A game is kept whole or not at all, whoever asks.
    assert [games.keeps(number, "z") for number in range(1000)] == begun
    others = [
        games.keeps((address, number), str(address))
        for address in range(20)
        for number in range(50)
    ]
    assert sum(others) == 400
    now[0] = 10.0
    assert sum(games.keeps(("later", number), "a") for number in range(1000)) == 20


def test_no_more_games_are_remembered_than_fit():
    games = NewGames()
    for number in range(20_000):
        games.keeps("asked about all the time", "a")
        games.keeps(number, "a")
    assert len(games._games) == 8192
    assert games.keeps("asked about all the time", "b")
