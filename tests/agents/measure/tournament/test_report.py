"""Which games a tournament's page shows."""

from __future__ import annotations

from agents.measure.tournament.report import _most_telling
from agents.measure.tournament.standings import standings
from tests.agents.measure.tournament.made import drawn, of, won


def test_games_that_the_lower_one_won_say_most_and_then_the_last_ones():
    games = [
        *(won(0, 1, number=number) for number in range(3)),
        won(1, 0, number=3),
        drawn(0, 1, number=4),
        won(0, 1, number=5),
    ]
    rows = standings(of(2), games)
    assert [game.number for game in _most_telling(rows, games)] == [3, 5, 4, 2, 1, 0]
