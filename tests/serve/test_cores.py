"""Who thinks when, and for how long."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from serve import cores
from serve.cores import Cores, usable_cores
from tests.serve.test_game_writer import until

HOUR = 3600.0


def test_a_call_that_comes_alone_gets_all_the_time():
    due = time.monotonic() + HOUR
    assert Cores(2).enter(due) == pytest.approx(due, abs=1e-3)


def test_the_time_is_shared_by_the_rounds_and_the_most_urgent_goes_first():
    shared, order, lock = Cores(2), [], threading.Lock()
    now = time.monotonic()
    for _ in range(2):
        shared.enter(now + HOUR)

    def think(urgency):
        due = now + HOUR + urgency
        enough = shared.enter(due)
        with lock:
            order.append((urgency, (enough - now) / HOUR))

    with ThreadPoolExecutor(8) as pool:
        calls = []
        for urgency in (5, 3, 7, 1, 0, 6, 2, 4):
            calls.append(pool.submit(think, urgency))
            until(lambda: len(shared._waiting) == len(calls))
        for done in range(8):
            shared.leave()
            until(lambda done=done: len(order) == done + 1)
    assert [urgency for urgency, _ in order] == list(range(8))
    # Two run and seven wait behind the first: four and a half rounds; the last two find nobody waiting.
    assert [share for _, share in order] == pytest.approx([2 / n for n in (9, 8, 7, 6, 5, 4, 3, 2)], rel=0.02)


def test_who_waits_in_vain_is_let_in_at_the_last_moment_and_leaves_no_place_behind():
    shared = Cores(1)
    shared.enter(time.monotonic() + HOUR)
    for left in (0.02, -1.0):
        due = time.monotonic() + left
        assert shared.enter(due) <= max(due, time.monotonic())
    assert (shared._running, shared._waiting) == (3, [])
    for _ in range(3):
        shared.leave()
    due = time.monotonic() + HOUR
    assert shared.enter(due) == pytest.approx(due, abs=1e-3)


def test_those_let_in_late_do_not_let_in_others():
    shared = Cores(1)
    shared.enter(time.monotonic() + HOUR)
    shared.enter(time.monotonic())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shared.enter, time.monotonic() + HOUR)
        until(lambda: shared._waiting)
        shared.leave()
        assert shared._waiting
        shared.leave()
        waiting.result(20)


def test_never_more_than_there_are_cores():
    shared, running, most, lock = Cores(3), 0, 0, threading.Lock()

    def think(_):
        nonlocal running, most
        shared.enter(time.monotonic() + HOUR)
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.001)
        with lock:
            running -= 1
        shared.leave()

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(think, range(200)))
    assert most == 3
    assert shared._running == 0


@pytest.mark.parametrize(("quota", "cores_expected"), [("50000 100000", 1), ("100000 100000", 1), ("max 100000", None)])
def test_a_containers_quota_counts(tmp_path, monkeypatch, quota, cores_expected):
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(cores, "_QUOTA", tmp_path / "missing")
    unlimited = usable_cores()
    monkeypatch.setattr(cores, "_QUOTA", tmp_path / "cpu.max")
    assert usable_cores() == (cores_expected or unlimited)
