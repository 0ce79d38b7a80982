"""A royale wall that is asked for at any turn, as strangers may, is that of the sides drawn one
after the other.
"""

from __future__ import annotations

import pytest

from envs.battlesnake import rng
from envs.battlesnake.plain import steps as plain


def outside(key, turn, every, width, height):
    """All points off the rectangle, by drawing a side for each period up to the turn."""
    left = 0
    right = width - 1
    bottom = 0
    top = height - 1
    for n in range((turn + 1) // every):
        side = rng.below(key, 0, rng.SHRINK, n, 4)
        left = left + (side == 0)
        right = right - (side == 1)
        bottom = bottom + (side == 2)
        top = top - (side == 3)
    return {
        (x, y)
        for x in range(width)
        for y in range(height)
        if not (left <= x <= right and bottom <= y <= top)
    }


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("turn", [1, 2, 3, 8, 15, 30, 60, 300])
def test_the_wall_is_where_its_sides_have_moved(turn, seed):
    before = {**plain.setup_board(width=11, height=7), "turn": turn}
    _, after = plain.ruleset_step(
        before, ["up", "up"], ruleset="royale", settings={"shrinkEveryNTurns": 1}, seed=seed
    )
    state = plain.state_from_board(before, settings=plain._settings({}))
    plain._seed(state, seed)
    found = {(point["x"], point["y"]) for point in after["hazards"]}
    assert found == outside(state.arrays.key[0], turn, 1, 11, 7)
    assert len(found) == len(after["hazards"])


def test_a_turn_far_beyond_any_game_has_hazards_everywhere():
    """It once took as long as all the periods before it."""
    before = {**plain.setup_board(width=7, height=7), "turn": 1 << 30}
    _, after = plain.ruleset_step(
        before, ["up", "up"], ruleset="royale", settings={"shrinkEveryNTurns": 1}
    )
    assert len(after["hazards"]) == 49
