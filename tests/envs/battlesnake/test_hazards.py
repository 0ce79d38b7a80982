"""Hazards in layers: counted exactly up to what an official game can stack, and never wrapped
round.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest

from envs.battlesnake import map_update, ruleset_step
from envs.battlesnake.games import play_turn
from envs.battlesnake.plain import state_from_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import MAX_LAYERS, add_hazard
from envs.battlesnake.webhook import WebhookError, fields, most_hazards, read_move_request
from envs.common.errors import InvalidStateError
from tests.envs.battlesnake.positions import board
from tests.envs.battlesnake.webhook.test_requests import plain_request


def heap(layers, *, x=3, y=4):
    """A board on which the first snake's next move upwards leads onto `layers` hazards."""
    snakes = [
        {"id": name, "health": 100, "body": [{"x": at, "y": row} for row in (3, 2, 1)]}
        for name, at in (("a", 3), ("b", 0))
    ]
    return {
        "turn": 5,
        "width": 7,
        "height": 7,
        "food": [],
        "hazards": [{"x": x, "y": y}] * layers,
        "snakes": snakes,
    }


@pytest.mark.parametrize("layers", [1, 3, 300, MAX_LAYERS])
@pytest.mark.parametrize("damage", [-14, 0, 1, 14])
def test_each_layer_costs_its_damage(layers, damage):
    _, after = ruleset_step(heap(layers), ["up", "up"], settings={"hazardDamagePerTurn": damage})
    health = 99
    for _ in range(layers):
        health = min(100, max(0, health - damage))
    assert after["snakes"][0]["health"] == health
    assert after["snakes"][0]["eliminatedCause"] == ("" if health else "hazard")
    assert len(after["hazards"]) == layers


@pytest.mark.parametrize("y", [4, 7 + 4], ids=["on the board", "above it"])
@pytest.mark.parametrize("layers", [MAX_LAYERS + 1, 40_000])
def test_more_than_any_game_stacks_is_refused_by_place(layers, y):
    with pytest.raises(
        InvalidStateError,
        match=rf"the hazard at \(3, {y}\) has {layers} layers; .* more than {MAX_LAYERS}",
    ):
        ruleset_step(heap(layers, y=y), ["up", "up"], settings={"hazardDamagePerTurn": 14})


def test_a_map_that_adds_without_end_fills_the_cell_and_no_more():
    state = board(7, 7, [(3, 3), (3, 2), (3, 1)])
    for _ in range(60):
        add_hazard(state.arrays, 0, state.cell(2, 2), 600)
    assert state.arrays.hazards[0, state.cell(2, 2)] == state.arrays.num_hazards[0] == MAX_LAYERS
    add_hazard(state.arrays, 0, state.cell(2, 2), -1)
    assert state.arrays.num_hazards[0] == MAX_LAYERS - 1


@pytest.mark.parametrize("field", ["food", "body"])
def test_more_entries_than_can_be_counted_are_refused(field):
    crowded = heap(0)
    if field == "food":
        crowded["food"] = [{"x": 5, "y": 5}] * 2500
    else:
        crowded["snakes"][0]["body"] = [{"x": 3, "y": 3}] * 40_000
    with pytest.raises(InvalidStateError, match=r"repeated 2500 times|have 40\d+ entries"):
        ruleset_step(crowded, ["up", "up"])


def round_trip(side, height):
    """All cells of a board of even height, in an order in which each is beside the next and the
    last beside the first.
    """
    cells = [(0, 0)]
    for y in range(height):
        row = [(x, y) for x in range(1, side)]
        cells += row if y % 2 == 0 else row[::-1]
    return cells + [(0, y) for y in range(height - 1, 0, -1)]


@pytest.fixture(scope="module")
def long_snail():
    """A solo snail game on 25 x 25 in which a snake of 312 has gone its own length and more;
    hazards cost nothing.
    """
    way = round_trip(25, 24)
    length = 312
    state = board(
        25,
        25,
        way[:length][::-1],
        ruleset="solo",
        map="snail_mode",
        hazard_damage=0,
        food_spawn_chance=0,
    )
    moves = {(0, 1): 0, (0, -1): 1, (-1, 0): 2, (1, 0): 3}
    running = np.ones(1, bool)
    for n in range(length - 1, 2 * length + 40):
        (x, y), (to_x, to_y) = way[n % len(way)], way[(n + 1) % len(way)]
        state.arrays.health[:] = 100
        play_turn(state, np.array([[moves[to_x - x, to_y - y]]], np.int8), running)
    assert running.all()
    return state, length


def test_a_long_snails_whole_trail_is_read(long_snail):
    state, length = long_snail
    layers = int(state.arrays.num_hazards[0])
    assert layers > 25 * 25 * 64
    turn = read_move_request(plain_request(state))
    assert (turn.state.arrays.hazards == state.arrays.hazards).all()
    assert set(map(tuple, turn.state.arrays.trail[0])) == set(map(tuple, state.arrays.trail[0]))
    assert turn.state.arrays.num_hazards[0] == layers
    assert length * (length - 1) / 2 < layers < most_hazards(25, 25)


def test_hazards_beyond_any_games_are_left_out_and_said_once(caplog, monkeypatch):
    monkeypatch.setattr(fields, "_already_logged", set())
    request = plain_request(board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)]))
    request["board"]["hazards"] = [{"x": 6, "y": 6}] * 40_000
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            turn = read_move_request(request)
    assert turn.state.arrays.hazards[0, turn.state.cell(6, 6)] == MAX_LAYERS
    assert len([record for record in caplog.records if "board.hazards" in record.getMessage()]) == 1


@pytest.mark.parametrize(
    ("hazard", "named"),
    [
        ({"x": 1}, r"board.hazards\[1\] is {'x': 1}"),
        (None, r"board.hazards\[1\] is None"),
        ({"x": 1, "y": [2]}, r"board.hazards\[1\] is "),
        ({"x": 1, "y": 2.5}, r"board.hazards holds a point \(1, 2.5\)"),
    ],
    ids=str,
)
def test_a_hazard_that_is_no_point_is_named(hazard, named):
    request = plain_request(board(7, 7, [(3, 3), (3, 2), (3, 1)], [(0, 0), (1, 0), (2, 0)]))
    request["board"]["hazards"] = [{"x": 0, "y": 0}, hazard, {"x": 0, "y": 0}]
    with pytest.raises(WebhookError, match=named):
        read_move_request(request)


def test_a_stack_melts_by_a_layer_a_turn_from_the_very_top():
    full = heap(MAX_LAYERS) | {"turn": 6}
    assert len(map_update(full, map="snail_mode")["hazards"]) == MAX_LAYERS - 1 + 2 * 3
    assert state_from_board(full, settings=Settings()).arrays.num_hazards[0] == MAX_LAYERS
