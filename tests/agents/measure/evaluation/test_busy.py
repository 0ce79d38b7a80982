"""Bursts of load: how they are seen, and that a snake which is late in one is asked again."""

from __future__ import annotations

import time

import numpy as np
import pytest

from agents.agent import Agent
from agents.measure.evaluation import busy
from agents.measure.evaluation.busy import LoadMeter
from agents.measure.evaluation.referee import Referee
from agents.measure.evaluation.remote_snake import Reply
from envs.battlesnake.state import LEFT, UP

LATE = Reply(UP, 510.0, "no answer within 500 ms")
GOOD = Reply(LEFT, 4.0, "")
REFUSED = Reply(UP, 2.0, "connection refused")


class Snake:
    """Behind a URL, with answers that are given; the last of them for ever."""

    answers: dict[str, list[Reply]]

    def __init__(self, url, timeout_ms):
        self.url = url
        self.asked = 0

    def check(self):
        return {}

    def tell(self, event, body):
        pass

    def close(self):
        pass

    def move(self, body):
        own = self.answers[self.url]
        self.asked += 1
        return own[min(self.asked, len(own)) - 1]


@pytest.fixture
def idle(monkeypatch):
    monkeypatch.setattr(LoadMeter, "stolen", lambda _: 0.0)


def first_turn(monkeypatch, *answers, agents=(), **options):
    """The frame of the first turn among snakes at servers of their own with these answers."""
    monkeypatch.setattr("agents.measure.evaluation.referee.RemoteSnake", Snake)
    urls = [f"http://127.0.0.{number}:1" for number in range(1, 1 + len(answers))]
    monkeypatch.setattr(Snake, "answers", dict(zip(urls, answers, strict=True)), raising=False)
    frames = Referee([*urls, *agents], tell_deadline=False, **options).play()
    next(frames)
    return next(frames)


def test_all_servers_at_once_are_asked_again_and_not_charged(idle, monkeypatch):
    frame = first_turn(monkeypatch, [LATE, GOOD], [LATE, LATE, GOOD], excuse_bursts=True)
    assert (frame.moves, frame.failures) == ([LEFT, UP], {1: LATE.failure})
    assert frame.excused == dict.fromkeys((0, 1), "all 2 servers were late on the same turn")
    # Nobody knows of a burst when the second one alone is late, nor by default.
    assert not first_turn(monkeypatch, [GOOD], [LATE, GOOD], excuse_bursts=True).excused
    charged = first_turn(monkeypatch, [LATE, GOOD], [LATE, GOOD])
    assert (charged.excused, set(charged.failures)) == ({}, {0, 1})


def test_after_three_times_it_is_charged(idle, monkeypatch):
    late = LATE._replace(latency_ms=700.0)
    assert not first_turn(
        monkeypatch, [late, late, late, GOOD], [GOOD], excuse_bursts=True
    ).failures
    frame = first_turn(monkeypatch, [late, late, late, late, GOOD], [GOOD], excuse_bursts=True)
    assert (set(frame.failures), set(frame.excused)) == ({0}, {0})


def test_what_is_no_delay_is_charged_in_a_burst_too(monkeypatch):
    monkeypatch.setattr(LoadMeter, "stolen", lambda _: 0.9)
    frame = first_turn(monkeypatch, [REFUSED, GOOD], [GOOD], excuse_bursts=True)
    assert (frame.failures, frame.excused) == ({0: REFUSED.failure}, {})


class Waiting(Agent):
    """Decides after a fifth of a second in which it had no processor."""

    name = "waiting"

    def act_batch(self, state, boards, slots):
        time.sleep(0.2)
        return np.full(len(boards), LEFT, np.int8)


def test_an_agent_that_waited_for_its_processor_shows_a_burst(idle, monkeypatch):
    frame = first_turn(monkeypatch, [LATE, GOOD], agents=[Waiting()], excuse_bursts=True)
    assert (frame.moves, frame.failures, set(frame.excused)) == ([LEFT, LEFT], {}, {0})
    assert "waited" in frame.excused[0]


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({"latencies_ms": {"a": 501.0, "b": 600.0}}, "all 2 servers were late on the same turn"),
        ({"latencies_ms": {"a": 499.0, "b": 501.0}}, ""),
        ({"latencies_ms": {"a": 501.0}}, ""),
        ({"latencies_ms": {"a": 640.0}}, "this process woke 140 ms after a timeout of 500 ms"),
        (
            {"latencies_ms": {"a": 501.0}, "waited_ms": 125.0},
            "the agents here waited 125 ms for a processor",
        ),
        ({"latencies_ms": {"a": 501.0}, "waited_ms": 124.0}, ""),
    ],
)
def test_by_what_a_burst_is_seen(idle, seen, told):
    assert LoadMeter().burst(timeout_ms=500, **seen) == told


def test_stolen_time_is_the_kernels_column_of_that_name(tmp_path, monkeypatch):
    # The columns of proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice.
    stat = tmp_path / "stat"
    monkeypatch.setattr(busy, "_STAT", stat)
    stat.write_text("cpu  100 0 100 800 0 0 0 50 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    meter = LoadMeter()
    assert meter.stolen() == 0
    stat.write_text("cpu  110 0 110 850 0 0 0 80 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert meter.stolen() == 0.3
    assert (
        meter.burst(timeout_ms=500, latencies_ms={"a": 501.0})
        == "30% of the processors' time was stolen"
    )
    stat.unlink()
    assert LoadMeter().stolen() == 0
