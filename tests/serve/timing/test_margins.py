"""What is learned of the way between a game's engine and us, and what a stranger can make of it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.timing.margins import (
    LEAST_BUDGET_MS,
    MIN_MS,
    REACH_MS,
    START_MS,
    GameMargin,
    milliseconds,
)

TIMEOUT_MS = 500
OWN_MS = 15.0
"""What an answer takes beside its budget: to be read, written and sent."""


class Game:
    """An engine at the other end of a network, and how it tells what an answer took.

    `way_ms` returns the network's share of a move. `telling` is a timeout's report. Reports are
    texts and numbers by turns."""

    def __init__(self, way_ms, telling):
        self.margin = GameMargin()
        self._way_ms = way_ms
        self._telling = telling
        self.late = []
        self.budgets = []
        self.news = []

    def play(self, turns):
        report = "0"
        for turn in range(turns):
            margin_ms = self.margin.margin_ms(turn, report, TIMEOUT_MS)
            self.news += filter(None, [self.margin.news(turn, margin_ms, TIMEOUT_MS)])
            self.budgets.append(TIMEOUT_MS - margin_ms)
            self.margin.answered(turn, self.budgets[-1])
            took_ms = self.budgets[-1] + OWN_MS + self._way_ms()
            if took_ms >= TIMEOUT_MS:
                self.late.append(turn)
                report = self._telling
            else:
                report = round(took_ms)
            report = str(report) if turn % 2 else report
        return self


@pytest.mark.parametrize("telling", [0, TIMEOUT_MS, TIMEOUT_MS + 100])
@pytest.mark.parametrize(
    ("least_ms", "most_ms"),
    [(0, 0), (100, 100), (200, 200), (440, 440), (0, 100), (150, 250), (300, 440), (0, 440)],
)
def test_at_most_two_of_the_first_moves_are_late_and_none_after(telling, least_ms, most_ms):
    chance = random.Random(most_ms)
    for _ in range(10):
        game = Game(lambda: chance.uniform(least_ms, most_ms), telling).play(200)
        assert sum(turn < 12 for turn in game.late) <= 2
        assert not [turn for turn in game.late if turn >= 12]


def test_a_steady_way_leaves_the_rest_of_the_time():
    for way_ms in (0, 50, 100, 200, 300):
        game = Game(lambda way_ms=way_ms: way_ms, 0).play(60)
        assert game.budgets[-1] == pytest.approx(TIMEOUT_MS - way_ms - OWN_MS - 70, abs=1)


def test_the_owner_is_told_what_is_left_once():
    game = Game(lambda: 200, 0).play(60)
    (news,) = game.news
    assert "takes up to 215 of the 500 ms" in news
    assert Game(lambda: 20, 0).play(60).news == []


@pytest.mark.parametrize("telling", [0, TIMEOUT_MS])
def test_an_engine_out_of_reach_is_told_as_such(telling):
    game = Game(lambda: TIMEOUT_MS - REACH_MS + 50, telling).play(60)
    assert len(game.late) == 60
    (news,) = game.news
    assert "no answer is in time" in news
    assert "more than 440 of the 500 ms" in news


def test_an_engine_that_never_measures_costs_few_moves_their_time():
    margin = GameMargin()
    budgets = []
    for turn in range(60):
        budgets.append(TIMEOUT_MS - margin.margin_ms(turn, "0", TIMEOUT_MS))
        margin.answered(turn, budgets[-1])
    assert [budget for budget in budgets if budget < TIMEOUT_MS - START_MS] == [LEAST_BUDGET_MS] * 3


def test_a_time_out_by_our_own_fault_says_nothing_of_the_way():
    margin = GameMargin()
    margin.margin_ms(0, "0", TIMEOUT_MS)
    margin.answered(0, TIMEOUT_MS + 50.0)
    assert margin.margin_ms(1, "0", TIMEOUT_MS) == START_MS
    assert margin.timeouts == 0


def test_a_zero_for_an_answer_that_took_no_time_is_no_time_out():
    margin = GameMargin()
    for turn in range(9):
        assert margin.margin_ms(turn, "0", TIMEOUT_MS) == START_MS
        margin.answered(turn, 0.4)


def test_a_peak_is_forgotten_slowly():
    margin = GameMargin()
    margins = []
    for turn in range(120):
        margins.append(margin.margin_ms(turn, "130" if turn == 1 else "30", TIMEOUT_MS))
        margin.answered(turn, 30.0)
    assert margins[1] == 170
    assert margins[2] > 150
    assert margins[2:] == sorted(margins[2:], reverse=True)
    assert margins[-1] == pytest.approx(70, abs=1)


def test_a_report_on_a_turn_that_another_process_answered_is_not_ours():
    margin = GameMargin()
    margin.answered(4, 30.0)
    assert margin.margin_ms(6, "400", TIMEOUT_MS) == START_MS
    assert margin.margin_ms(5, "400", TIMEOUT_MS) > START_MS


@pytest.mark.parametrize(
    ("reported", "number"),
    [("0", 0), (0, 0), (0.0, 0), ("250", 250), (250, 250), (250.5, 250.5)]
    + [
        (junk, None)
        for junk in (
            "",
            "x",
            "-1",
            "1e3",
            "٣",
            -1,
            True,
            None,
            [],
            {},
            float("nan"),
            float("inf"),
            10**400,
            "999999",
        )
    ],
)
def test_what_a_report_is(reported, number):
    assert milliseconds(reported) == number


_nonsense = (
    st.text()
    | st.integers()
    | st.floats()
    | st.none()
    | st.lists(st.integers())
    | st.integers(0, 600).map(str)
)


@given(
    st.lists(st.tuples(_nonsense, st.integers(-3, 9), st.floats(0, 1e9)), max_size=30),
    st.sampled_from([100, 500, 10_000]),
)
def test_no_report_drives_it_out_of_its_bounds(reports, timeout_ms):
    margin = GameMargin()
    for reported, turn, took_ms in reports:
        margin_ms = margin.margin_ms(turn, reported, timeout_ms)
        assert MIN_MS <= margin_ms <= timeout_ms - LEAST_BUDGET_MS
        margin.news(turn, margin_ms, timeout_ms)
        margin.answered(turn, took_ms)
