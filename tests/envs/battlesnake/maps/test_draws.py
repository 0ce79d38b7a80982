"""How likely what the maps draw is: chi-squared over 20 000 games each, with fixed seeds."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from envs.battlesnake import maps, rng
from envs.battlesnake.maps.catalogue import LIMITS
from envs.battlesnake.plain import state_from_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import State

GAMES = 20_000
ALL = np.arange(GAMES)


def assert_distributed(counts, weights=None):
    """Pearson's chi-squared test at 99.9 %, its quantile by Wilson and Hilferty (1931)."""
    counts = np.asarray(counts, float)
    weights = np.ones(len(counts)) if weights is None else np.asarray(weights, float)
    expected = counts.sum() * weights / weights.sum()
    assert expected.min() > 5
    freedom = len(counts) - 1
    bound = freedom * (1 - 2 / (9 * freedom) + 3.09 * sqrt(2 / (9 * freedom))) ** 3
    assert ((counts - expected) ** 2 / expected).sum() < bound


def assert_uniform(values, options):
    """All of `options` many values occur, equally often."""
    _, counts = np.unique(values, return_counts=True, axis=0)
    assert len(counts) == options
    assert_distributed(counts)


def laid_out(map_name="standard", size=None, num_snakes=1, **settings):
    width, height = size or (LIMITS[map_name].sizes or [(11, 11)])[0]
    settings = Settings(map=map_name, **{"minimum_food": 0, **settings})
    state = State(GAMES, width=width, height=height, num_snakes=num_snakes, settings=settings)
    maps.set_up(state, ALL)
    return state


def updated(state, turn=0):
    state.arrays.turn[:] = turn
    maps.update(state, ALL)
    return state


def heads(state, slot=0):
    return state.arrays.body[:, slot, 0]


@pytest.mark.parametrize(
    ("map_name", "chance", "percent"),
    [
        ("standard", 15, 14),
        ("standard", 50, 49),
        ("standard", 100, 99),
        ("standard", 2, 1),
        ("hz_rivers_bridges", 15, 14),
        ("arcade_maze", 15, 16),
        ("arcade_maze", 1, 2),
        ("arcade_maze", 60, 61),
    ],
)
def test_chance_of_food(map_name, chance, percent):
    state = laid_out(map_name, food_spawn_chance=chance)
    state.arrays.food[:] = 0
    state.arrays.num_food[:] = 0
    fed = int(updated(state, turn=3).arrays.num_food.sum())
    assert_distributed([fed, GAMES - fed], [percent, 100 - percent])


@pytest.mark.parametrize(
    ("map_name", "chance"), [("standard", 0), ("standard", 1), ("arcade_maze", 0), ("empty", 100)]
)
def test_no_food_at_all(map_name, chance):
    state = laid_out(map_name, food_spawn_chance=chance)
    state.arrays.food[:] = 0
    state.arrays.num_food[:] = 0
    assert not updated(state).arrays.num_food.any()


@pytest.mark.parametrize("free_rows", [11, 2])
def test_food_falls_uniformly_on_free_cells(free_rows):
    """On an open board the blind tries do it, on a crowded one the count of free cells."""
    body = [
        {"x": x if y % 2 else 10 - x, "y": y} for y in range(free_rows, 11) for x in range(11)
    ] or [{"x": 5, "y": 5}]
    board = {"width": 11, "height": 11, "snakes": [{"id": "a", "health": 9, "body": body}]}
    state = state_from_board(board, settings=Settings(minimum_food=1)).select(np.zeros(GAMES, int))
    state.seed(7)
    updated(state, turn=5)
    assert (state.arrays.num_food == 1).all()
    head = body[0]
    neighbours = 4 if free_rows == 11 else 1
    taken = len(body) + neighbours
    assert not state.arrays.food[:, state.cell(head["x"], head["y"])].any()
    assert_uniform(np.nonzero(state.arrays.food)[1], 121 - taken)


def test_food_of_two_turns_is_independent():
    state = laid_out(size=(4, 4), minimum_food=1)
    pairs = []
    for turn in (4, 5):
        state.arrays.food[:] = 0
        state.arrays.num_food[:] = 0
        pairs.append(np.nonzero(updated(state, turn).arrays.food)[1])
    same_start = heads(state) == heads(state)[0]
    free = len(np.unique(pairs[0][same_start]))
    assert_uniform(np.stack(pairs, 1)[same_start], free * free)


def test_start_cells():
    four = laid_out(num_snakes=4)
    assert_uniform(heads(four), 8)
    assert_uniform(np.stack([heads(four), heads(four, 1)], 1), 8 * 3)
    assert_uniform(heads(laid_out(num_snakes=8), 5), 8)
    assert_uniform(heads(laid_out(num_snakes=9)), 16)
    assert_uniform(heads(laid_out(size=(5, 5), num_snakes=2), 1), 12)
    assert_uniform(heads(laid_out("hz_castle_wall", num_snakes=4), 3), 4)
    assert_uniform(heads(laid_out("hz_castle_wall", num_snakes=5), 3), 8)
    assert_uniform(heads(laid_out("hz_castle_wall_xl", num_snakes=9)), 12)
    assert_uniform(heads(laid_out("hz_rivers_bridges_lg", num_snakes=4), 2), 16)
    assert_uniform(heads(laid_out("hz_islands_bridges", num_snakes=4), 2), 8)
    assert_uniform(heads(laid_out("hz_hazard_pits", num_snakes=2), 1), 4)
    assert_uniform(heads(laid_out("arcade_maze", num_snakes=5), 2), 4)


def test_first_food_lies_behind_the_snake_on_either_side():
    state = laid_out(num_snakes=1)
    offsets = np.nonzero(state.arrays.food)[1].reshape(GAMES, 2) - heads(state)[:, None]
    centre = np.array([state.cell(5, 5)])[None] - heads(state)[:, None]
    assert_uniform(np.stack([heads(state), offsets[offsets != centre]], 1), 8 * 2)


def test_royale_takes_all_sides_alike():
    state = updated(laid_out("royale", shrink_every_n_turns=1))
    assert_uniform(state.arrays.hazards, 4)


def test_castle_and_arcade_feed_their_spots_alike():
    assert_uniform(np.nonzero(updated(laid_out("hz_castle_wall_lg"), turn=10).arrays.food)[1], 16)
    arcade = updated(laid_out("arcade_maze", food_spawn_chance=99))
    started_elsewhere = heads(arcade) != arcade.cell(4, 7)
    counts = arcade.arrays.food[started_elsewhere][
        :, [arcade.cell(*c) for c in ((1, 1), (4, 7), (9, 11), (17, 1))]
    ].sum(0)
    assert_distributed(counts)


def test_pools_are_chosen_and_vanish_alike():
    state = laid_out("healing_pools", size=(11, 11), shrink_every_n_turns=5)
    assert_uniform(state.arrays.hazards, 4)
    lone = updated(state, turn=5)
    assert_uniform(lone.arrays.hazards, 8)


@pytest.mark.parametrize(
    ("map_name", "turn", "cells"),
    [
        ("hz_spiral", 2, 5 * 5),
        ("hz_scatter", 1, 11 * 11),
        ("hz_grow_box", 0, 8 * 8),
        ("hz_expand_box", 0, 8 * 8),
        ("hz_expand_scatter", 0, 10 * 10),
    ],
)
def test_where_hazards_begin_to_spread(map_name, turn, cells):
    state = updated(laid_out(map_name), turn)
    assert_uniform(np.nonzero(state.arrays.hazards)[1], cells)


def test_how_hazards_go_on_to_spread():
    grown = laid_out("hz_grow_box")
    first = np.nonzero(updated(grown, 0).arrays.hazards)[1]
    second = np.nonzero(updated(grown, 12).arrays.hazards)
    steps = np.array([c for b, c in zip(*second, strict=True) if c != first[b]]) - first
    assert_uniform(
        steps[np.isin(first, [grown.cell(x, y) for x in range(2, 9) for y in range(2, 9)])], 4
    )
    scattered = laid_out("hz_expand_scatter")
    first = np.nonzero(updated(scattered, 0).arrays.hazards)[1]
    second = np.nonzero(updated(scattered, 2).arrays.hazards)
    steps = np.array([c for b, c in zip(*second, strict=True) if c != first[b]]) - first
    inner = np.isin(first, [scattered.cell(x, y) for x in range(1, 10) for y in range(1, 10)])
    assert_uniform(steps[inner], 8)


def test_shuffle_makes_every_order_alike():
    orders = []
    for game in range(GAMES):
        order = np.arange(4)
        rng.shuffle(order, np.uint64(rng.mix(game)), 0, rng.START_CELLS, 0)
        orders.append(order)
    assert_uniform(orders, 24)
