"""The table of a tournament fits a terminal of 80 columns."""

from __future__ import annotations

from agents.measure.tournament.ratings import WengLin
from agents.measure.tournament.standings import Standing, table


def standing(name: str, failures: int) -> Standing:
    return Standing(
        player=0,
        name=name,
        games=1200,
        wins=345,
        draws=12,
        points=0.501,
        skill=WengLin(mu=35.1, sigma=1.02),
        elo=-286.0,
        interval=(-386.0, -186.0),
        latency_ms=123.45,
        slowest_ms=200.0,
        failures=failures,
        excused=0,
        failure="",
        causes={},
    )


def test_it_fits_80_columns_and_names_who_failed():
    text = table([standing("champion-standard", 0), standing("late", 3)])
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[-1] == "without a valid answer in time (turns): late 3"
