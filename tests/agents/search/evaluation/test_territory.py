"""The fills on bits against one on points and sets."""

from __future__ import annotations

import numpy as np
import pytest

from agents.search.evaluation.fill import divide
from agents.search.evaluation.fill_rows import bits_in, divide_rows
from agents.search.evaluation.territory import NO_FOOD, new_territory, survey
from envs.battlesnake.state import ALIVE
from tests.agents.boards import board, played_boards
from tests.envs.battlesnake.positions import neighbours


def filled(state, viewer, steps=24, divide=divide):
    territory = new_territory(state, steps=steps)
    survey(state.arrays, state.rules, territory)
    divide(state.arrays, state.rules, territory, viewer)
    living = [i for i in range(state.num_snakes) if state.arrays.cause[0, i] == ALIVE]
    return {
        i: (territory.area[i], territory.clean_area[i], territory.food_distance[i]) for i in living
    }


def reference(state, viewer, steps=24):
    """By the description of `divide`, a move at a time."""
    r = state.rules
    a = state.arrays
    bodies = {i: state.body(0, i) for i in range(state.num_snakes) if a.cause[0, i] == ALIVE}
    damage = {
        (x, y): a.hazards[0, state.cell(x, y)] * r.hazard_damage
        for x in range(r.width)
        for y in range(r.height)
    }
    food = set(state.points(a.food[0]))
    order = sorted(bodies, key=lambda i: (-len(bodies[i]), i == viewer, i))
    regions = {i: {bodies[i][0]} for i in bodies}
    reached = {p for body in bodies.values() for p in body}
    meal = dict.fromkeys(bodies, NO_FOOD)
    for k in range(1, steps + 1):
        if not r.constrictor:
            for body in bodies.values():
                if k < len(body) and body[-k] != body[-k - 1]:
                    reached -= {body[-k]}
        before = {i: set(region) for i, region in regions.items()}
        for i in order:
            for p in before[i]:
                for q in neighbours(p, r):
                    if q not in reached and damage[q] < 99:
                        regions[i].add(q)
                        reached.add(q)
                        if q in food and meal[i] == NO_FOOD:
                            meal[i] = k
        if before == regions and (k > 3 or r.constrictor):
            break
    return {
        i: (len(region), sum(damage[p] <= 0 for p in region), meal[i])
        for i, region in regions.items()
    }


@pytest.mark.parametrize(
    "setting",
    [
        {"num_snakes": 4},
        {"num_snakes": 2, "width": 7, "height": 7},
        {"num_snakes": 3, "width": 19, "height": 21},
        {"num_snakes": 2, "width": 3, "height": 25},
        {"num_snakes": 3, "width": 16, "height": 8},
        {"num_snakes": 3, "width": 10, "height": 13},
        {"num_snakes": 2, "width": 25, "height": 25, "ruleset": "wrapped"},
        {"num_snakes": 3, "width": 7, "height": 14, "ruleset": "wrapped"},
        {"num_snakes": 2, "ruleset": "constrictor"},
        {"num_snakes": 2, "ruleset": "royale", "shrink_every_n_turns": 3},
        {"num_snakes": 2, "ruleset": "royale", "shrink_every_n_turns": 3, "hazard_damage": 100},
    ],
    ids=str,
)
def test_fill_agrees_with_sets_of_points(setting):
    compared = 0
    for state, boards, slots in played_boards(12, food_spawn_chance=50, **setting):
        for b, slot in list(zip(boards, slots))[::5]:
            one = state.select([b])
            assert (
                filled(one, slot) == filled(one, slot, divide=divide_rows) == reference(one, slot)
            )
            compared += 1
    assert compared > 5


def test_a_tail_is_gone_with_the_first_move_and_a_doubled_one_with_the_second():
    loop = [(0, 0), (1, 0), (1, 1), (0, 1)]
    single, doubled = (board(body, size=(3, 3), ruleset="solo") for body in (loop, [*loop, (0, 1)]))
    assert [filled(single, 0, steps=k)[0][0] for k in (1, 2)] == [2, 4]
    assert [filled(doubled, 0, steps=k)[0][0] for k in (1, 2)] == [1, 2]


@pytest.mark.parametrize("word", [0, 1, 0x80000000, 0xFFFFFFFF, 0x12345678, 0x0F0F0F01])
def test_bits_are_counted(word):
    assert bits_in(np.uint32(word)) == bin(word).count("1")
