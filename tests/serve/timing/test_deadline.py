"""Whatever the agent does, there is a legal answer in time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import agents
from agents.agent import Agent, Decision
from envs.battlesnake.state import DOWN, LEFT, RIGHT, UP
from envs.battlesnake.webhook import Turn
from serve.monitoring.logs import Seldom
from serve.timing import deadline
from serve.timing.cores import Cores
from serve.timing.deadline import safest_move
from tests.envs.battlesnake.positions import board
from tests.serve.agents import Exits, Hangs, Nonsense, Raises
from tests.waiting import until

Decider = partial(deadline.Decider, stall_ms=lambda: 0.0, max_think_ms=10_000)


def turn(timeout_ms=300):
    state = board(7, 7, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)])
    return Turn(state=state, you=0, game_id="g", timeout_ms=timeout_ms, ids=["a", "b"])


def test_a_good_agent_is_asked():
    decision = Decider(agents.make("flood")).decide(turn(timeout_ms=10_000))
    assert decision.move == UP
    assert not decision.note


@pytest.mark.parametrize(
    "agent",
    [
        Raises(),
        Exits(),
        *map(Nonsense, (Decision(7), Decision(-1), Decision(1.0), Decision("up"), None)),
    ],
    ids=["raises", "exits", "seven", "minus one", "float", "text", "None"],
)
def test_a_failing_agent_is_answered_for(agent):
    decision = Decider(agent).decide(turn())
    assert decision.move == UP
    assert decision.note["fallback"]


@pytest.mark.parametrize(
    ("agent", "traces"),
    [(Raises(), 1), (Exits(), 1), (Nonsense(None), 0)],
    ids=["raises", "exits", "nonsense"],
)
def test_strangers_who_know_a_board_that_fails_do_not_fill_the_log(agent, traces, caplog):
    for deciding in (Decider(agent), Decider(agent)):
        for _ in range(3):
            assert deciding.decide(turn(timeout_ms=10_000)).note["fallback"]
        assert len(caplog.records) == 1
        assert caplog.text.count("Traceback") == traces
        caplog.clear()


def test_each_reason_to_answer_for_an_agent_is_logged_once_a_minute(caplog):
    """However many timeouts strangers give their games."""
    late = Hangs()
    now = [0.0]
    decider = Decider(Raises())
    decider._seldom = Seldom(clock=lambda: now[0])
    decider.decide(turn(timeout_ms=10_000))
    decider.agent = late
    for timeout_ms in (150, 200, 250):
        decider.decide(turn(timeout_ms), arrived=time.monotonic() - 100)
    late.release.set()
    assert ["no answer" in record.getMessage() for record in caplog.records] == [False, True]
    now[0], decider.agent = 61.0, Raises()
    decider.decide(turn(timeout_ms=10_000))
    assert len(caplog.records) == 3


def test_a_late_agent_is_answered_for_before_the_timeout():
    agent = Hangs()
    decision = Decider(agent).decide(turn(timeout_ms=200))
    agent.release.set()
    assert decision.note["fallback"] == "no answer within 120 ms"
    assert decision.move == UP


def test_hanging_calls_do_not_starve_later_ones():
    agent = Hangs()
    decider = Decider(agent, max_concurrent=2)
    for _ in range(2):
        decider.decide(turn(timeout_ms=100))
    assert "still running" in decider.decide(turn(timeout_ms=5000)).note["fallback"]
    agent.release.set()
    until(lambda: "fallback" not in decider.decide(turn(timeout_ms=5000)).note)


class Together(Raises):
    """Answers once so many calls run at the same time."""

    def __init__(self, calls):
        self._all = threading.Barrier(calls)

    def act(self, state, you, deadline=None):
        self._all.wait(10)
        return Decision(UP)


def test_as_many_calls_of_one_snake_run_as_the_cores_let_run():
    decider = Decider(Together(32), cores=Cores(16))
    turns = [replace(turn(timeout_ms=10_000), game_id=str(number)) for number in range(32)]
    with ThreadPoolExecutor(32) as pool:
        assert [decision.note for decision in pool.map(decider.decide, turns)] == [{}] * 32


class Records:
    """A last word that was, or wasn't, needed."""

    def __init__(self, *, is_late):
        self.is_late = is_late
        self.said = []

    def at(self, due, move):
        self.said.append((due, move))

    def claim(self):
        return not self.is_late


@pytest.mark.parametrize("is_late", [False, True])
def test_the_last_word_is_the_decision_if_it_came_to_that(is_late):
    last_word = Records(is_late=is_late)
    arrived = time.monotonic()
    decision = Decider(agents.make("flood")).decide(
        turn(timeout_ms=10_000), arrived=arrived, last_word=last_word
    )
    assert last_word.said == [(pytest.approx(arrived + 9.92), UP)]
    assert ("no answer within 9920 ms" in decision.note.get("fallback", "")) == is_late


class Watches(Agent):
    """Remembers until when it was told to think."""

    name = "watches"

    def __init__(self):
        self.deadlines = []

    def act(self, state, you, deadline=None):
        self.deadlines.append(deadline)
        return Decision(UP)

    def act_batch(self, state, boards, slots):
        raise NotImplementedError


def test_the_time_to_think_is_what_is_left_since_the_request_arrived():
    agent = Watches()
    arrived = time.monotonic() - 0.5
    Decider(agent).decide(turn(timeout_ms=9000), arrived=arrived)
    # 80 ms before the timeout at first, and 20 ms more for the answer to leave.
    assert agent.deadlines[0] - arrived == pytest.approx(8.9)


def test_a_machine_that_stalls_takes_from_the_time_to_think_up_to_half_of_it():
    for stalled, told in ((0, 0.4), (100, 0.25), (9000, 0.145)):
        agent = Watches()
        arrived = time.monotonic()
        Decider(agent, stall_ms=lambda stalled=stalled: stalled).decide(
            turn(timeout_ms=500), arrived=arrived
        )
        assert agent.deadlines[0] - arrived == pytest.approx(told)


def test_no_call_thinks_for_longer_than_it_may():
    agent = Watches()
    arrived = time.monotonic()
    Decider(agent, max_think_ms=1000).decide(turn(timeout_ms=10_000), arrived=arrived)
    assert agent.deadlines[0] - arrived == pytest.approx(0.98)


def test_a_slow_network_takes_from_the_time_to_think():
    agent = Watches()
    decider = Decider(Watches())
    decider.agent = agent
    for number, reported in enumerate(["0", "5000", "5000", "junk", [7], None]):
        state = turn(9000).state
        state.arrays.turn[0] = number
        arrived = time.monotonic()
        decider.decide(replace(turn(9000), state=state), arrived=arrived, reported=reported)
        agent.deadlines[-1] -= arrived
    assert agent.deadlines[0] == pytest.approx(8.9)
    # Of a first report of 5 s half is taken for jitter, and the peak sinks by nothing while no
    # other report comes.
    assert agent.deadlines[1] == pytest.approx(9 - 5 - 2.5 - 0.02, abs=0.1)
    assert np.diff(agent.deadlines[2:]).min() > -1e-9


def test_a_request_that_waited_too_long_for_us_is_answered_at_once():
    decision = Decider(Hangs()).decide(turn(), arrived=time.monotonic() - 100)
    assert decision.move == UP
    assert "within 220 ms" in decision.note["fallback"]


def test_a_snake_that_hangs_does_not_starve_another():
    shared = Cores(1)
    stuck = Hangs()
    hanging = Decider(stuck, cores=shared)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(hanging.decide, turn(timeout_ms=400)) for _ in range(4)]
        good = Decider(agents.make("flood"), cores=shared).decide(turn(timeout_ms=10_000))
    assert not good.note
    assert all(call.result().note["fallback"] for call in calls)
    stuck.release.set()


def test_the_safest_move_has_the_most_room():
    # Left leads into a dead end, down into the open.
    body = [(1, 3), (2, 3), (2, 4), (1, 4), (0, 4)]
    assert safest_move(board(7, 7, body, [(0, 2), (0, 1), (0, 0)]), 0) == DOWN
    assert safest_move(board(5, 5, [(0, 0), (0, 1), (0, 2)]), 0) == RIGHT
    assert safest_move(
        board(5, 5, [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)], ruleset="wrapped"), 0
    ) in (LEFT, DOWN)
