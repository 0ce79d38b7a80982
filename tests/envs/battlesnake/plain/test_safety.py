"""The safest move in pure Python against the one on the engine's arrays, and on boards that those
can't hold.
"""

from __future__ import annotations

import pytest

from envs.battlesnake.plain import board_from_state
from envs.battlesnake.plain.safety import safest_plain_move
from envs.battlesnake.settings import Settings
from serve.timing.deadline import safest_move
from tests.envs.battlesnake.positions import living, random_games


@pytest.mark.parametrize(
    "game",
    [
        {},
        {"ruleset": "wrapped", "map": "hz_scatter", "hazard_damage": 30},
        {"ruleset": "royale", "shrink_every_n_turns": 2, "hazard_damage": 40},
        {"map": "snail_mode", "width": 7, "height": 7},
        {"ruleset": "wrapped_constrictor", "width": 7, "height": 9},
    ],
    ids=str,
)
def test_it_is_the_move_that_the_engines_arrays_give(game):
    compared = 0
    for state in random_games(num_boards=4, turns=40, **game):
        for b, slot in zip(*living(state), strict=True):
            one = state.select([b])
            plain = board_from_state(one, 0, [str(i) for i in range(4)])
            alive = [snake for snake in plain["snakes"] if not snake["eliminatedCause"]]
            you = next(i for i, snake in enumerate(alive) if snake["id"] == str(slot))
            hazards = {}
            for p in plain["hazards"]:
                hazards[p["x"], p["y"]] = hazards.get((p["x"], p["y"]), 0) + 1
            assert safest_plain_move(
                plain | {"snakes": alive}, hazards, you, state.rules
            ) == safest_move(one, int(slot))
            compared += 1
    assert compared > 200


@pytest.mark.parametrize("side", [1, 2, 40, 1000])
def test_it_stays_on_boards_of_any_size(side):
    """In the top right corner, come from the left: down is the one way, where there is one."""
    top = side - 1
    body = [{"x": top, "y": top}, {"x": max(0, top - 1), "y": top}]
    plain = {"snakes": [{"health": 100, "body": body}], "food": []}
    move = safest_plain_move(plain, {}, 0, Settings().rules(side, side))
    assert move == 1 if side > 1 else move in range(4)
