"""What a test says in words."""

from __future__ import annotations

import json
import math

import pytest

from agents.measure.sprt.page import verdict_in_words, write_page
from agents.measure.sprt.play import SprtProgress
from agents.measure.sprt.settings import Sprt
from agents.measure.sprt.statistics import Hypotheses
from tests.agents.measure.pages.reading import Page
from tests.agents.measure.tournament.made import players, won


@pytest.mark.parametrize(
    ("elo0", "winner", "told"),
    [
        (
            0,
            0,
            (
                "H1 accepted: flood is stronger: against greedy, flood {}; 50 or more is likelier"
                " than 0 or less."
            ),
        ),
        (-30, 0, "H1 accepted: against greedy, flood {}; 50 or more is likelier than -30 or less."),
        (0, 1, "H0 accepted: against greedy, flood {}; 0 or less is likelier than 50 or more."),
    ],
)
def test_the_verdict_says_what_was_measured_and_claims_no_more_than_was_tested(elo0, winner, told):
    test = Sprt(players=players("flood", "greedy"), hypotheses=Hypotheses(elo0=elo0, elo1=50))
    games = [
        won(winner, 1 - winner, round_=block, number=rotation)
        for block in range(40)
        for rotation in range(2)
    ]
    assert verdict_in_words(SprtProgress(test)) == "Undecided: the test needs more games."
    assert verdict_in_words(SprtProgress(test, games)) == told.format(f"scored {1 - winner:.1%}")
    games[:2] = [won(1 - winner, winner, round_=0, number=rotation) for rotation in range(2)]
    progress = SprtProgress(test, games)
    measured = progress.to_dict()["normalised_elo"]
    figures = "measured {value:+.0f} ({low:+.0f} … {high:+.0f}) normalised Elo".format(**measured)
    assert verdict_in_words(progress) == told.format(figures)


def test_what_thirty_pairs_that_were_all_won_cannot_tell_is_unknown_on_the_page_and_null_in_json(
    tmp_path,
):
    test = Sprt(players=players("flood", "greedy"), hypotheses=Hypotheses(elo1=0.001))
    games = [
        won(0, 1, round_=block, number=rotation) for block in range(30) for rotation in range(2)
    ]
    progress = SprtProgress(test, games)
    text = Page(write_page(progress, tmp_path / "sprt.html").read_text()).text
    # Wilson's interval of 30 of 30: 30 / (30 + 1.96²).
    assert "100.0% (88.6% … 100.0%)" in text
    assert "+∞ (+357 … +∞)" in text
    assert "normalised Elo, 95 % interval unknown" in " ".join(text.split())
    told = json.loads(json.dumps(progress.to_dict(), allow_nan=False))
    assert told["elo"] == {
        "value": None,
        "low": pytest.approx(400 * math.log10(30 / 1.959964**2), abs=0.01),
        "high": None,
    }
    assert told["normalised_elo"] is None
    assert progress.games_to_go() > 0
