"""The features of a learned evaluation against slow counts on points and sets."""

from __future__ import annotations

import numpy as np
import pytest

from agents.search.evaluation.evaluate import Weights, judge
from agents.search.evaluation.learned_features import (
    LARGEST,
    NUM_FEATURES,
    OWN,
    SHARED,
    geometry_of,
    write_features,
)
from agents.search.evaluation.territory import NO_FOOD, REACHED_AFTER, new_territory, survey
from envs.battlesnake.plain import board_from_state, state_from_board
from tests.agents.boards import board, played_boards
from tests.envs.battlesnake.positions import neighbours


def features(state, me):
    territory = new_territory(state, with_stages=True)
    found = np.zeros(NUM_FEATURES, np.int64)
    survey(state.arrays, state.rules, territory)
    judge(state.arrays, state.rules, territory, Weights(), me)
    write_features(state.arrays, state.rules, territory, geometry_of(state, territory), found, me)
    mine, theirs, shared = np.split(found, [len(OWN), 2 * len(OWN)])
    return dict(zip(OWN, mine)), dict(zip(OWN, theirs)), dict(zip(SHARED, shared))


def reference(state, me):
    """By the comments of `OWN` and `SHARED`."""
    bodies = [state.body(0, i) for i in (0, 1)]
    stages, meals = fill(state, bodies, me)
    other = 1 - me
    food = set(state.points(state.arrays.food[0]))
    (x, y), (v, w) = bodies[me][0], bodies[other][0]
    lead = len(bodies[me]) - len(bodies[other])
    distance = abs(x - v) + abs(y - w)
    longer = (lead > 0) - (lead < 0)
    even = distance % 2 == 0
    shared = {
        "tempo": 1,
        "longer": longer,
        "lead_3": np.clip(lead, -3, 3),
        "lead_8": np.clip(lead, -8, 8),
        "distance": distance,
        "even": even,
        "even_longer": even * longer,
        "close_longer": longer * max(0, 6 - distance),
        "at_two": distance == 2,
        "at_three": distance == 3,
        "food": min(20, len(food)),
    }
    mine, theirs = (own(state, bodies, stages, meals[i], i) for i in (me, other))
    return mine, theirs, shared


def own(state, bodies, stages, meal, i):
    region = stages[-1][i]
    body = bodies[i]
    other = bodies[1 - i]
    health, (x, y), r = int(state.arrays.health[0, i]), body[0], state.rules
    reach = [len(stages[min(moves, len(stages) - 1)][i]) for moves in REACHED_AFTER]
    at_edge = {
        (a, b)
        for a in range(r.width)
        for b in range(r.height)
        if a in (0, r.width - 1) or b in (0, r.height - 1)
    }
    beside = {q for p in stages[-1][1 - i] for q in neighbours(p, r)}
    off_x = min(x, r.width - 1 - x)
    off_y = min(y, r.height - 1 - y)
    return {
        **{f"reached_{moves}": count for moves, count in zip(REACHED_AFTER, reach)},
        "area": len(region),
        "length": len(body),
        "health": health,
        "hunger": (100 - health) ** 2 // 100,
        "food_near": max(0, 20 - meal),
        "no_food": meal == NO_FOOD,
        "starving": meal > health,
        "food_owned": min(6, len(region & set(state.points(state.arrays.food[0])))),
        "lack": max(0, len(body) - len(region)),
        "tight": len(body) > reach[-1],
        "tail_reached": body[-1] in region,
        "other_tail_reached": other[-1] in region,
        "freed_cells": len(region & {p for one in bodies for p in one}),
        "edge_cells": len(region & at_edge),
        "neighbours": (
            sum((a + 1, b) in region for a, b in region)
            + sum((a, b + 1) in region for a, b in region)
        ),
        "contact": len(region & beside),
        "head_at_edge": (off_x == 0) + (off_y == 0),
        "head_off_edge": off_x + off_y,
    }


def fill(state, bodies, viewer):
    """Both regions at the start and after each move, and the moves to the nearest food."""
    order = sorted((0, 1), key=lambda i: (-len(bodies[i]), i == viewer))
    stages = [[{body[0]} for body in bodies]]
    meals = [NO_FOOD, NO_FOOD]
    reached = {p for body in bodies for p in body}
    food = set(state.points(state.arrays.food[0]))
    for k in range(1, 25):
        reached -= {body[-k] for body in bodies if k < len(body) and body[-k] != body[-k - 1]}
        grown = [set(region) for region in stages[-1]]
        for i in order:
            for p in stages[-1][i]:
                for q in set(neighbours(p, state.rules)) - reached:
                    grown[i].add(q)
                    reached.add(q)
                    if q in food:
                        meals[i] = min(meals[i], k)
        stages.append(grown)
        if stages[-1] == stages[-2] and k > 3:
            break
    return stages, meals


def positions(**settings):
    for state, boards, slots in played_boards(30, num_snakes=2, food_spawn_chance=40, **settings):
        for b, slot in list(zip(boards, slots))[::3]:
            one = state.select([b])
            if one.arrays.num_alive[0] == 2:
                yield one, int(slot)


@pytest.mark.parametrize("size", [(11, 11), (7, 7), (16, 8), (3, 25)], ids=str)
def test_features_are_those_that_slow_counts_on_points_find(size):
    compared = 0
    for state, me in positions(width=size[0], height=size[1]):
        assert features(state, me) == reference(state, me)
        compared += 1
    assert compared > 20


def test_long_bodies_have_the_features_of_slow_counts_too():
    ring = [(x, 0) for x in range(10, -1, -1)] + [(0, y) for y in range(1, 9)] + [(0, 8)]
    comb = [
        (5, 6),
        (6, 6),
        (6, 5),
        (5, 5),
        (4, 5),
        (4, 6),
        (4, 7),
        (4, 8),
        (5, 8),
        (6, 8),
        (7, 8),
        (8, 8),
        (8, 7),
        (8, 6),
    ]
    state = board(
        ring, comb, size=(11, 11), food=[(10, 10), (5, 7), (7, 7), (2, 2)], health=[3, 50]
    )
    for me in (0, 1):
        found = features(state, me)
        assert found == reference(state, me)
        # Both are shut in, or not, as the drawing has it; otherwise the test would show little.
        assert (
            found[me]["tail_reached"] != found[1 - me]["tail_reached"]
            or found[0]["lack"] != found[1]["lack"]
        )


def test_if_the_other_snake_looks_the_two_halves_change_places():
    compared = 0
    for state, me in positions(width=11, height=11):
        if state.arrays.length[0, 0] == state.arrays.length[0, 1]:
            continue
        mine, theirs, shared = features(state, me)
        assert features(state, 1 - me)[:2] == (theirs, mine)
        for name, value in features(state, 1 - me)[2].items():
            assert value == (
                -shared[name]
                if name.startswith("lead") or name.endswith("longer")
                else shared[name]
            )
        compared += 1
    assert compared > 20


@pytest.mark.parametrize(
    "turned", [lambda x, y: (10 - x, y), lambda x, y: (x, 10 - y), lambda x, y: (y, x)], ids="xyd"
)
def test_a_mirrored_board_has_the_same_features(turned):
    for state, me in positions(width=11, height=11):
        assert features(mirrored(state, turned), me) == features(state, me)


def mirrored(state, turned):
    plain = board_from_state(state, 0, ["0", "1"])
    for snake in plain["snakes"]:
        snake["body"] = [place(turned(p["x"], p["y"])) for p in snake["body"]]
    plain["food"] = [place(turned(p["x"], p["y"])) for p in plain["food"]]
    return state_from_board(plain, settings=state.settings)


def place(point):
    return {"x": point[0], "y": point[1]}


def test_no_feature_is_larger_than_is_said():
    largest = max(
        abs(int(v))
        for state, me in positions(width=16, height=8)
        for half in features(state, me)
        for v in half.values()
    )
    # The largest that a board of 128 cells can have: 15 · 8 + 16 · 7 pairs of neighbours.
    assert 100 < largest <= 15 * 8 + 16 * 7 <= LARGEST
