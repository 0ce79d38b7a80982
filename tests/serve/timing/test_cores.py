"""Who thinks when, and for how long."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from serve.timing.cores import Cores
from tests.waiting import until

HOUR = 3600.0


def test_a_call_that_comes_alone_gets_all_the_time():
    due = time.monotonic() + HOUR
    assert Cores(2).enter(due).until == pytest.approx(due, abs=1e-3)


def test_the_time_is_shared_by_the_rounds_and_the_most_urgent_goes_first():
    shared = Cores(2)
    order = []
    lock = threading.Lock()
    now = time.monotonic()
    running = [shared.enter(now + 60) for _ in range(2)]

    def think(urgency):
        due = now + HOUR + urgency
        place = shared.enter(due)
        with lock:
            order.append((urgency, (place.until - now) / HOUR))
            running.append(place)

    with ThreadPoolExecutor(8) as pool:
        calls = []
        for urgency in (5, 3, 7, 1, 0, 6, 2, 4):
            calls.append(pool.submit(think, urgency))
            until(lambda: len(shared._waiting) == len(calls))
        for done in range(8):
            shared.leave(running.pop(0))
            until(lambda done=done: len(order) == done + 1)
    assert [urgency for urgency, _ in order] == list(range(8))
    # Two run and seven wait behind the first: four and a half rounds; the last two find nobody
    # waiting.
    assert [share for _, share in order] == pytest.approx(
        [2 / n for n in (9, 8, 7, 6, 5, 4, 3, 2)], rel=0.02
    )


def test_who_waits_in_vain_is_let_in_at_the_last_moment_and_leaves_no_place_behind():
    shared = Cores(1)
    places = [shared.enter(time.monotonic() + 0.01)]
    for left in (0.02, -1.0):
        due = time.monotonic() + left
        places.append(shared.enter(due))
        assert places[-1].until <= max(due, time.monotonic())
    assert (shared._running, shared._waiting) == (places, [])
    for place in places:
        shared.leave(place)
    due = time.monotonic() + HOUR
    assert shared.enter(due).until == pytest.approx(due, abs=1e-3)


def test_those_let_in_late_do_not_let_in_others():
    shared = Cores(1)
    first = shared.enter(time.monotonic() + 60)
    second = shared.enter(time.monotonic())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shared.enter, time.monotonic() + HOUR)
        until(lambda: shared._waiting)
        shared.leave(second)
        assert shared._waiting
        shared.leave(first)
        waiting.result(20)


def test_three_long_calls_of_others_leave_a_game_its_part():
    shared = Cores(2)
    now = time.monotonic()
    for _ in range(3):
        shared.enter(now + HOUR)  # the third would wait for an hour in vain, and runs beside
    place = shared.enter(now + 0.4, game="honest")
    assert place.until == pytest.approx(now + 0.4, abs=0.1)
    assert len(shared._running) == 4
    with ThreadPoolExecutor(1) as pool:
        fifth = pool.submit(shared.enter, now + HOUR)
        until(lambda: shared._waiting)
        for running in list(shared._running)[:3]:
            shared.leave(running)
        fifth.result(20)


def test_a_games_second_call_waits_behind_everybodys_first():
    shared = Cores(1)
    order = []
    lock = threading.Lock()
    now = time.monotonic()
    running = [shared.enter(now + 60, game="greedy")]

    def think(game, due):
        place = shared.enter(due, game=game)
        with lock:
            order.append((game, round((place.until - now) / HOUR, 1)))
            running.append(place)

    with ThreadPoolExecutor(3) as pool:
        for number, (game, due) in enumerate(
            (("greedy", now + HOUR), ("greedy", now + HOUR + 1), ("honest", now + 2 * HOUR))
        ):
            pool.submit(think, game, due)
            until(lambda number=number: len(shared._waiting) == number + 1)
        for done in range(3):
            shared.leave(running.pop(0))
            until(lambda done=done: len(order) == done + 1)
    # Two games share one core, however many calls one of them makes.
    assert order == [("honest", 1.0), ("greedy", 1.0), ("greedy", 1.0)]


def test_never_more_than_twice_as_many_as_there_are_cores():
    shared = Cores(3)
    running = 0
    most = 0
    lock = threading.Lock()

    def think(_):
        nonlocal running, most
        place = shared.enter(time.monotonic() + HOUR)
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.001)
        with lock:
            running -= 1
        shared.leave(place)

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(think, range(200)))
    assert 3 <= most <= 6
    assert shared._running == []
