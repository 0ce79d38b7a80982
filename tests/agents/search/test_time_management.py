"""Workspaces are used again, never by two searches at once, and never kept without bound."""

from __future__ import annotations

import itertools
import time

import pytest

from agents.search.alphabeta.agent import AlphaBeta
from agents.search.mcts.agent import MCTS
from agents.search.time_management import MOST_IDLE, SearchLimits, WorkspacePool, cpu_due
from envs.battlesnake.plain import setup_board, state_from_board
from envs.battlesnake.state import State
from envs.common.errors import ConfigError


def shape(width, height=7, snakes=2):
    return State(1, width=width, height=height, num_snakes=snakes)


@pytest.fixture
def pool():
    return WorkspacePool(lambda state: object(), most=3)


def test_a_workspace_is_used_again_by_its_shape_alone(pool):
    with pool.borrow(shape(7)) as first, pool.borrow(shape(7)) as second:
        assert first is not second
    with pool.borrow(shape(7)) as again:
        assert again in (first, second)
    longer = State(1, width=7, height=7, num_snakes=2, max_length=60)
    for other in (longer, shape(8), shape(7, 8), shape(7, snakes=3)):
        with pool.borrow(other) as different:
            assert different not in (first, second)


def test_the_least_recently_used_are_dropped(pool):
    spaces = {}
    for width in (7, 8, 9, 7, 10):
        with pool.borrow(shape(width)) as space:
            spaces.setdefault(width, space)
    assert len(pool) == 3
    for width, is_kept in ((7, True), (8, False)):
        with pool.borrow(shape(width)) as space:
            assert (space is spaces[width]) == is_kept


def test_strangers_shapes_do_not_pile_up():
    agent = AlphaBeta(nodes=1, table_bits=8)
    for side in range(5, 5 + MOST_IDLE + 4):
        agent.act(state_from_board(setup_board(width=side, height=7, snake_ids=("a", "b"))), 0)
    assert len(agent._idle) == MOST_IDLE


def test_processor_time_is_counted_on_the_thread_that_asks(monkeypatch):
    now = iter([10.0, 10.004, 10.006])
    monkeypatch.setattr(time, "thread_time", lambda: next(now))
    budget = SearchLimits(None, None, cpu_due(5.0))
    assert budget.pause(0) > 0
    assert [budget.is_spent(0), budget.is_spent(0)] == [False, True]


@pytest.mark.parametrize(("search", "counted"), [(AlphaBeta, "nodes"), (MCTS, "simulations")])
def test_a_search_thinks_as_long_as_its_processor_time_lasts(monkeypatch, search, counted):
    # This clock goes on by a millisecond whenever it is looked at, whatever the machine does.
    board = state_from_board(setup_board(width=11, height=11, snake_ids=("a", "b")))

    def effort(cpu_ms):
        ticks = itertools.count()
        monkeypatch.setattr(time, "thread_time", lambda: next(ticks) / 1000)
        return search(cpu_ms=cpu_ms).act(board, 0).note[counted]

    assert effort(3) < effort(12) < effort(40)
    assert effort(12) == effort(12)


@pytest.mark.parametrize("search", [AlphaBeta, MCTS])
def test_no_time_at_all_is_refused(search):
    with pytest.raises(ConfigError, match="cpu_ms is 0"):
        search(cpu_ms=0)
