"""What a test says in words."""

from __future__ import annotations

import pytest

from agents.sprt.page import verdict_in_words
from agents.sprt.play import SprtProgress
from agents.sprt.settings import Sprt
from agents.sprt.statistics import Hypotheses
from tests.agents.tournament.made import players, won


@pytest.mark.parametrize(
    ("elo0", "winner", "told"),
    [
        (0, 0, "H1 accepted: flood is stronger than greedy, by 50 normalised Elo rather than 0."),
        (-30, 0, "H1 accepted: against greedy, flood stands at +50 normalised Elo or above, not at -30."),
        (0, 1, "H0 accepted: flood is not 50 normalised Elo above greedy; 0 or less is likelier."),
    ],
)
def test_the_verdict_claims_no_more_than_was_tested(elo0, winner, told):
    test = Sprt(players=players("flood", "greedy"), hypotheses=Hypotheses(elo0=elo0, elo1=50))
    games = [won(winner, 1 - winner, round_=block, number=rotation) for block in range(40) for rotation in range(2)]
    assert verdict_in_words(SprtProgress(test)) == "Undecided: the test needs more games."
    assert verdict_in_words(SprtProgress(test, games)) == told
