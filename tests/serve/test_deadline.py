"""Whatever the agent does, there is a legal answer in time."""

from __future__ import annotations

import time

import pytest

import agents
from agents.agent import Decision
from envs.battlesnake.state import DOWN, LEFT, RIGHT, UP
from envs.battlesnake.webhook import Turn
from serve.deadline import Decider, safest_move
from tests.envs.battlesnake.positions import board
from tests.serve.agents import Exits, Hangs, Nonsense, Raises


def turn(timeout_ms=300):
    state = board(7, 7, [(0, 0), (1, 0), (2, 0)], [(5, 5), (5, 4), (5, 3)])
    return Turn(state=state, you=0, game_id="g", timeout_ms=timeout_ms, ids=["a", "b"])


def test_a_good_agent_is_asked():
    decision = Decider(agents.make("flood")).decide(turn())
    assert decision.move == UP
    assert not decision.note


@pytest.mark.parametrize(
    "agent",
    [Raises(), Exits(), *map(Nonsense, (Decision(7), Decision(-1), Decision(1.0), Decision("up"), None))],
    ids=["raises", "exits", "seven", "minus one", "float", "text", "None"],
)
def test_a_failing_agent_is_answered_for(agent):
    decision = Decider(agent).decide(turn())
    assert decision.move == UP
    assert decision.note["fallback"]


def test_a_late_agent_is_answered_for_before_the_timeout():
    agent = Hangs()
    began = time.monotonic()
    decision = Decider(agent).decide(turn(timeout_ms=200))
    waited = time.monotonic() - began
    agent.release.set()
    assert decision.note["fallback"] == "no answer within 120 ms"
    assert decision.move == UP
    assert waited < 10  # the agent would have taken thirty seconds


def test_hanging_calls_do_not_starve_later_ones():
    agent = Hangs()
    decider = Decider(agent, max_concurrent=2)
    for _ in range(2):
        decider.decide(turn(timeout_ms=100))
    assert "still running" in decider.decide(turn(timeout_ms=5000)).note["fallback"]
    agent.release.set()
    deadline = time.monotonic() + 20
    while "fallback" in decider.decide(turn(timeout_ms=5000)).note:
        assert time.monotonic() < deadline


def test_the_safest_move_has_the_most_room():
    # Left leads into a dead end, down into the open.
    body = [(1, 3), (2, 3), (2, 4), (1, 4), (0, 4)]
    assert safest_move(board(7, 7, body, [(0, 2), (0, 1), (0, 0)]), 0) == DOWN
    assert safest_move(board(5, 5, [(0, 0), (0, 1), (0, 2)]), 0) == RIGHT
    assert safest_move(board(5, 5, [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)], ruleset="wrapped"), 0) in (LEFT, DOWN)
