"""A nap that lasts too long was a stall; its peak sinks."""

from __future__ import annotations

import pytest

from serve.timing.stalls import Stalls, stall_ms
from tests.waiting import until


def test_the_peak_counts_and_sinks():
    now = [0.0]
    late = [0.0]

    def sleep(seconds):
        now[0] += seconds + late[0]

    stalls = Stalls(clock=lambda: now[0], sleep=sleep)
    stalls.nap()
    assert stalls.ms == 0
    late[0] = 0.103
    stalls.nap()
    assert stalls.ms == pytest.approx(100)
    late[0] = 0.0
    while now[0] < 10.0:
        stalls.nap()
    assert stalls.ms == pytest.approx(50, rel=0.02)


def test_this_process_is_measured():
    """It is busy itself, so that the thread that measures has to wait."""
    assert stall_ms() >= 0
    until(lambda: sum(range(3_000_000)) and stall_ms() > 0)
