"""The two counts of Arena's corpses, of a few games: nothing is read wrongly, and both shapes of a
request are one game.
"""

from __future__ import annotations

import agents
from tests.benchmarks.arena_lives import counted
from tests.benchmarks.arena_shapes import compared


def test_no_life_is_read_wrongly():
    counts = counted(8)
    assert counts["corpses"] > 100
    for kind, count in counts.items():
        if "called" in kind or "could be decided" in kind:
            assert count == 0, kind


def test_both_shapes_are_one_game():
    counts = compared(agents.make("flood"), 4)
    assert counts["turns with corpses"] > 50
    assert counts["turns that differ"] == 0
