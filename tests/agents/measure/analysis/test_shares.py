"""What a position's evaluation is made of."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from agents.measure.analysis.shares import HAND, LEARNED, explain, in_words
from agents.search.evaluation.evaluate import CROWD, Weights
from agents.search.evaluation.learned import LearnedEvaluation
from agents.search.evaluation.learned_features import NUM_FEATURES, OWN, SHARED
from agents.search.evaluation.learned_weights import INPUT_UNIT, UNIT, HiddenUnit, Phase
from agents.search.evaluation.territory import new_territory
from tests.agents.boards import board, played_boards
from tests.agents.search.evaluation.test_hidden_units import random_units
from tests.agents.search.evaluation.test_learned import correction, random_weights
from tests.agents.search.evaluation.test_learned_features import positions
from tests.agents.search.tuning.made import evaluate


@pytest.mark.parametrize("units", [0, 8])
def test_the_shares_of_a_duel_add_up_to_what_the_search_evaluates(units):
    learned = replace(random_weights(3), units=random_units(units))
    duels = list(islice(positions(width=11, height=11), 30))
    assert len(duels) == 30
    for state, me in duels:
        found = explain(state, me, learned)
        assert found.sum(HAND) == pytest.approx(
            evaluate(state, me, new_territory(state), Weights()), abs=4
        )
        # The search rounds down.
        assert found.sum(LEARNED) - 1 <= correction(learned, state, me)[0] <= found.sum(LEARNED)
        assert found.sum() == pytest.approx(found.sum(HAND) + found.sum(LEARNED))


def test_hidden_units_are_told_as_one_share():
    state = board([(1, 1), (1, 2), (1, 3)], [(9, 9), (9, 8), (9, 7)], size=(11, 11))
    on = HiddenUnit.of([0] * NUM_FEATURES, bias=INPUT_UNIT, points=7 * UNIT)
    learned = replace(random_weights(0, most=0), units=(on,) * 3)
    words = in_words(explain(state, 0, learned)).splitlines()
    assert "     +21  hidden units, which see all features together  (learned)" in words
    assert not any("None" in line for line in words)


def test_among_four_the_hand_written_shares_are_those_of_a_crowd():
    compared = 0
    for state, boards, slots in played_boards(20, num_snakes=4):
        one = state.select(boards[[0]])
        me = int(slots[0])
        if one.arrays.num_alive[0] > 2:
            found = explain(one, me)
            living = int(one.arrays.num_alive[0])
            assert found.evaluation == (
                f"hand-written, because the game has {living} snakes, and duel-units is for duels"
            )
            assert {share.source for share in found.shares} == {HAND}
            assert found.sum() == pytest.approx(evaluate(one, me, new_territory(one), CROWD), abs=4)
            compared += 1
    assert compared > 7


def test_a_feature_is_told_with_its_values_and_in_words():
    """A body of 5 against one of 3, and 10 points per entry of length; the pair's `longer` adds
    7.
    """
    state = board([(1, 1), (1, 2), (1, 3), (1, 4), (1, 5)], [(9, 9), (9, 8), (9, 7)], size=(11, 11))
    lengths = {
        "mine": {"length": 10 * UNIT},
        "theirs": {"length": -10 * UNIT},
        "shared": {"longer": 7 * UNIT},
    }
    learned = LearnedEvaluation(width=11, height=11, phases=(Phase(up_to=None, **lengths),))
    told = {
        share.words: share for share in explain(state, 0, learned).shares if share.source == LEARNED
    }
    assert (told["length"].points, told["length"].mine, told["length"].theirs) == (20.0, 5, 3)
    assert (told["longer (1) or shorter (-1)"].points, told["longer (1) or shorter (-1)"].mine) == (
        7.0,
        1,
    )
    words = in_words(explain(state, 0, learned))
    assert "     +27  length  (learned)" in words.splitlines()
    assert "     +20  length: 5, the other 3  (length)" in words.splitlines()
    assert explain(state, 1, learned).sum(LEARNED) == -27
    # Each feature is told once.
    assert len(told) == len(OWN) + len(SHARED)
