"""The hand-written evaluation."""

from __future__ import annotations

import pytest

from agents.search.evaluation.evaluate import Weights
from agents.search.evaluation.territory import new_territory
from tests.agents.boards import played_boards
from tests.agents.search.tuning.made import evaluate


def test_the_prize_is_shared_by_the_living():
    """Among equals each of n snakes wins one game in n."""
    seen = set()
    for state, boards, slots in played_boards(40, num_snakes=5)[::2]:
        one = state.select(boards[[0]])
        living = int(one.arrays.num_alive[0])
        if living < 2:
            continue
        territory = new_territory(one)
        me = int(slots[0])
        without, with_it = (
            evaluate(one, me, territory, Weights(prize=prize)) for prize in (0, 12_000)
        )
        assert with_it - without == pytest.approx(12_000 * (1 / living - 1 / 4), abs=1)
        seen.add(living)
    assert seen == {2, 3, 4, 5}
