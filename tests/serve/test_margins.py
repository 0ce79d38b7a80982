"""What is learned of a game's overhead, and what a stranger can make of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.margins import MAX_MS, MIN_MS, START_MS, Margins

GAME = "game", "you"


def play(margins, turns, *, overhead_ms, took_ms=30.0, game=GAME, first=0):
    """The margin after some turns that took us `took_ms` and the engine that and the overhead."""
    reported = "0"
    for turn in range(first, first + turns):
        margin = margins.margin_ms(game, turn, reported)
        margins.answered(game, turn, took_ms)
        reported = str(round(took_ms + overhead_ms))
    return margin


@pytest.mark.parametrize(("overhead_ms", "margin_ms"), [(0, 70), (20, 100), (100, 220), (400, MAX_MS)])
def test_it_follows_the_overhead(overhead_ms, margin_ms):
    assert play(Margins(), 50, overhead_ms=overhead_ms) == pytest.approx(margin_ms)


def test_it_starts_careful_and_a_peak_is_forgotten_slowly():
    margins = Margins()
    assert margins.margin_ms(GAME, 0, "0") == START_MS
    assert play(margins, 2, overhead_ms=100) == 220
    after = [play(margins, 2, overhead_ms=0, first=2 * n + 2) for n in range(60)]
    assert after[0] > 180
    assert after == sorted(after, reverse=True)
    assert after[-1] == pytest.approx(70, abs=1)


def test_games_do_not_mix():
    margins = Margins()
    play(margins, 9, overhead_ms=100)
    assert margins.margin_ms(("game", "another of ours"), 3, "500") == START_MS
    assert margins.margin_ms(("another", "you"), 3, "500") == START_MS


def test_a_report_on_a_turn_that_another_process_answered_is_not_ours():
    margins = Margins()
    margins.answered(GAME, 4, 30.0)
    assert margins.margin_ms(GAME, 6, "400") == START_MS
    assert margins.margin_ms(GAME, 5, "400") == MAX_MS


_nonsense = st.text() | st.integers() | st.floats() | st.none() | st.lists(st.integers()) | st.integers().map(str)


@given(st.lists(st.tuples(_nonsense, st.integers(-3, 9), st.floats(0, 1e9)), max_size=30))
def test_no_report_drives_it_out_of_its_bounds(reports):
    margins = Margins()
    for reported, turn, took_ms in reports:
        assert MIN_MS <= margins.margin_ms(GAME, turn, reported) <= MAX_MS
        margins.answered(GAME, turn, took_ms)


def test_it_forgets_old_games_and_never_knows_many():
    now = [0.0]
    margins = Margins(max_games=10, max_idle_s=60, clock=lambda: now[0])
    for number in range(30):
        margins.answered((str(number), "you"), 0, 1.0)
    assert len(margins) == 10
    now[0] = 61.0
    margins.answered(("new", "you"), 0, 1.0)
    assert len(margins) == 1
