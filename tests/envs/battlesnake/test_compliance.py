"""The public check for maps and rulesets: sound ones pass, broken ones are named."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest

from envs.battlesnake import maps, rng
from envs.battlesnake.compliance import check_map, check_ruleset, check_state
from envs.battlesnake.jit import kernel
from envs.battlesnake.maps.catalogue import _USER_MAPS, LIMITS
from envs.battlesnake.maps.standard import cell_at, set_up_standard, update_standard
from envs.battlesnake.rules import move_snakes, reduce_health, step_board
from envs.battlesnake.settings import MAP_IDS, OFFICIAL_MAPS, RULESETS, Settings
from envs.battlesnake.state import State, add_hazard, add_snake
from envs.common.errors import ComplianceError, ConfigError


@pytest.fixture(autouse=True)
def maps_taken_back() -> Iterator[None]:
    """What is registered here is no map of the other tests in this process."""
    with patch.dict(_USER_MAPS), patch.dict(LIMITS), patch.dict(MAP_IDS):
        yield


@pytest.mark.parametrize("name", OFFICIAL_MAPS)
def test_every_official_map_complies(name):
    limits = LIMITS[name]
    width, height = limits.sizes[0] if limits.sizes else (7, 9)
    check_map(
        name,
        width=width,
        height=height,
        num_snakes=min(4, limits.most_snakes),
        num_games=4,
        num_turns=30,
        shrink_every_n_turns=3,
    )


@pytest.mark.parametrize("ruleset", RULESETS)
def test_every_official_ruleset_complies(ruleset):
    check_ruleset(settings=Settings(ruleset=ruleset, map="hz_columns"), num_games=8, num_turns=60)


@kernel
def _one_hazard_a_turn(s, b, r):
    update_standard(s, b, r)
    x = rng.below(s.key[b], s.turn[b], rng.MAP_HAZARDS, 0, r.width)
    add_hazard(s, b, cell_at(r, x, 0), 1)


@kernel
def _forgets_to_count(s, b, r):
    s.food[b, cell_at(r, 0, 0)] += 1


@kernel
def _reaches_beyond_the_edge(s, b, r):
    add_hazard(s, b, cell_at(r, -1, 0), 1)


@kernel
def _changes_the_turn(s, b, r):
    s.turn[b] += 1


@kernel
def _leaves_a_slot_empty(s, b, r):
    for i in range(s.cause.shape[1] - 1):
        add_snake(s, b, i, cell_at(r, i, i), 3)
    return 0


@kernel
def _refuses(s, b, r):
    return 9


@kernel
def _refuses_the_first_board(s, b, r):
    return -1 if b == 0 else set_up_standard(s, b, r)


def test_a_registered_map_plays_and_complies():
    maps.register_map("test_bottom_row", set_up_standard, _one_hazard_a_turn, most_snakes=3)
    check_map("test_bottom_row", num_snakes=3, num_games=4, num_turns=40)
    state = State(2, settings=Settings(map="test_bottom_row"), num_snakes=3)
    maps.set_up(state, np.arange(2))
    maps.update(state, np.arange(1))
    assert state.arrays.num_hazards.tolist() == [1, 0]
    with pytest.raises(
        ConfigError, match=r"num_snakes is 4; map 'test_bottom_row' takes at most 3"
    ):
        check_map("test_bottom_row", num_snakes=4)


@pytest.mark.parametrize(
    ("update", "trouble"),
    [
        (_forgets_to_count, "num_food is not the food"),
        (_reaches_beyond_the_edge, "hazards has entries off the 11x11 board"),
        (_changes_the_turn, "turn or key was changed by the map"),
    ],
)
def test_a_broken_update_is_named(update, trouble):
    maps.register_map("test_broken", set_up_standard, update)
    with pytest.raises(ComplianceError, match=f"map 'test_broken', turn 0.*: {trouble}"):
        check_map("test_broken", num_games=2, num_turns=5)


def test_a_broken_set_up_is_named():
    maps.register_map("test_broken", _leaves_a_slot_empty, update_standard)
    with pytest.raises(
        ComplianceError, match="set-up: cause is not ALIVE with full health in every slot"
    ):
        check_map("test_broken", num_games=2)
    maps.register_map("test_broken", _refuses, update_standard)
    with pytest.raises(ConfigError, match="map 'test_broken' refused 4 snakes on 11x11"):
        check_map("test_broken", num_games=2)
    maps.register_map("test_broken", _refuses_the_first_board, update_standard)
    with pytest.raises(
        ConfigError, match=r"map 'test_broken' refused .* \(its set-up returned -1\)"
    ):
        check_map("test_broken", num_games=2)


def test_a_map_that_draws_from_elsewhere_is_found_out():
    draws = np.random.default_rng(0)

    def moody_step(s, b, r, moves):
        if draws.random() < 0.5:
            step_board(s, b, r, moves)

    with pytest.raises(ComplianceError, match="the same seed gave two different games"):
        check_ruleset(moody_step, num_games=2, num_turns=20)


def test_a_broken_ruleset_is_named():
    def immortal(s, b, r, moves):
        move_snakes(s, b, r, moves)
        reduce_health(s, b)

    with pytest.raises(
        ComplianceError, match=r"occupied has entries off the 11x11 board|health leaves"
    ):
        check_ruleset(immortal, num_games=2)


@pytest.mark.parametrize(
    "array",
    ["num_alive", "num_food", "num_hazards", "occupied", "hazards", "health", "length", "killer"],
)
def test_each_array_is_checked(array):
    state = State(2)
    maps.set_up(state, np.arange(2))
    check_state(state)
    getattr(state.arrays, array)[1] -= 101
    with pytest.raises(ComplianceError, match=f"^the state: {array}"):
        check_state(state)
