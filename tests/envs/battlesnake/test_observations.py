"""The egocentric planes against a slow reading of their own table, and what rotation promises."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest

from envs.battlesnake.observations import (
    PLANES,
    EgocentricPlanes,
    choose_observation,
    headings,
    observation_from_contract,
)
from envs.battlesnake.observing.painting import REACH_PLANES
from envs.battlesnake.state import ALIVE, MOVE_NAMES
from envs.common.errors import ConfigError, UnknownNameError
from tests.envs.battlesnake.positions import board, living, neighbours, random_games

TYPES = [
    EgocentricPlanes(view="board"),
    EgocentricPlanes(),
    EgocentricPlanes(radius=5),
    EgocentricPlanes(rotate=True),
    EgocentricPlanes(radius=3, rotate=True),
    EgocentricPlanes(radius=5, rotate=True, cyclic=True),
    EgocentricPlanes(radius=2, cyclic=True),
    EgocentricPlanes(radius=5, rotate=True, reach=True),
    EgocentricPlanes(view="board", reach=True),
]
ALL_PLANES = [*PLANES, *REACH_PLANES]
TURN = {
    "up": lambda x, y: (x, y),
    "down": lambda x, y: (-x, -y),
    "left": lambda x, y: (y, -x),
    "right": lambda x, y: (-y, x),
}


def reference(state, b, slot, kind):
    """The table of `EgocentricPlanes`, plane by plane, cell by cell."""
    a = state.arrays
    wrapped = state.rules.wrapped
    rows, columns, planes = kind.space(state.width, state.height).shape
    picture = np.zeros((rows, columns, planes), int)
    head = state.body(b, slot)[0]
    heading = (
        MOVE_NAMES[headings(state, np.array([b]), np.array([slot]))[0]] if kind.rotate else "up"
    )

    def put(point, plane, value):
        x, y = point
        if kind.view == "board":
            if 0 <= x < state.width and 0 <= y < state.height:
                picture[rows - 1 - y, x, ALL_PLANES.index(plane)] = min(255, value)
            return
        dx = x - head[0]
        dy = y - head[1]
        if wrapped or (kind.cyclic and plane != "edge"):
            dx = min((dx + k * state.width for k in (-1, 0, 1)), key=lambda d: (abs(d), d))
            dy = min((dy + k * state.height for k in (-1, 0, 1)), key=lambda d: (abs(d), d))
        dx, dy = TURN[heading](dx, dy)
        row = rows // 2 - dy
        column = columns // 2 + dx
        if 0 <= row < rows and 0 <= column < columns:
            picture[row, column, ALL_PLANES.index(plane)] = min(255, value)

    if kind.view == "window" and not wrapped:
        for x in range(-1, state.width + 1):
            for y in range(-1, state.height + 1):
                if not (0 <= x < state.width and 0 <= y < state.height):
                    put((x, y), "edge", 1)
    for plane, counts in (("food", a.food[b]), ("hazard", a.hazards[b])):
        for cell in np.flatnonzero(counts):
            put(state.point(cell), plane, int(counts[cell]))
    alive = [j for j in range(state.num_snakes) if a.cause[b, j] == ALIVE]
    for j in {slot, *alive}:
        body = state.body(b, j)
        for entry, point in reversed(list(enumerate(body))):
            put(point, "my_body" if j == slot else "other_body", len(body) - entry)
        if len(body) > 1 and body[-1] == body[-2]:
            put(body[-1], "stacked_tail", 1)
        if j == slot:
            put(body[0], "my_head", int(a.health[b, j]))
            put(body[0], "opponents", len([k for k in alive if k != slot]))
            continue
        difference = int(a.length[b, slot]) - int(a.length[b, j])
        put(body[0], "weaker_head" if difference > 0 else "stronger_head", int(a.health[b, j]))
        put(body[0], "length_difference", max(1, min(21, 11 + difference)))
        if difference <= 0:
            for dx, dy in ((0, 1), (0, -1), (1, 0), (-1, 0)):
                x = body[0][0] + dx
                y = body[0][1] + dy
                if wrapped:
                    x = x % state.width
                    y = y % state.height
                if 0 <= x < state.width and 0 <= y < state.height:
                    put((x, y), "threat", 1)
    if kind.reach:
        for point, values in reference_reach(state, b, slot, alive).items():
            for plane, value in values.items():
                put(point, plane, value)
    return picture


def reference_reach(state, b, slot, alive):
    """For each point beside the head where it isn't certain death to go: the values of the reach
    planes.
    """
    a = state.arrays
    r = state.rules
    free_at = defaultdict(int)
    for j in alive:
        body = state.body(b, j)
        for entry, point in enumerate(body):
            free_at[point] = max(free_at[point], math.inf if r.constrictor else len(body) - entry)

    def health_at(point, health):
        cell = state.cell(*point)
        if a.food[b, cell]:
            return 100
        left = min(100, health - 1 - int(a.hazards[b, cell]) * r.hazard_damage)
        return 100 if r.constrictor and left > 0 else left

    def arrivals(start, move, health):
        """On which move each point is reached; with `health` None it doesn't count."""
        reached = {start: (move, health)}
        front = [start]
        while front:
            point = front.pop(0)
            k, left = reached[point]
            for other in neighbours(point, r):
                then = None if left is None else health_at(other, left)
                if other not in reached and k + 1 >= free_at[other] and (then is None or then > 0):
                    reached[other] = k + 1, then
                    front.append(other)
        return {point: k for point, (k, _) in reached.items()}

    others = [
        (arrivals(state.body(b, j)[0], 0, None), a.length[b, j] >= a.length[b, slot])
        for j in alive
        if j != slot
    ]
    values = {}
    food = {state.point(cell) for cell in np.flatnonzero(a.food[b])}
    for start in neighbours(state.body(b, slot)[0], r) if slot in alive else ():
        health = health_at(start, int(a.health[b, slot]))
        if free_at[start] > 1 or health <= 0:
            continue
        mine = arrivals(start, 1, health)
        first = {
            p
            for p, k in mine.items()
            if all(k < came.get(p, math.inf) + (not wins) for came, wins in others)
        }
        near = min((mine[p] for p in first & food), default=None)
        values[start] = {
            "space": len(mine),
            "reached_first": len(first),
            "roomy": int(len(mine) >= a.length[b, slot]),
            "near_food": 255 // near if near else 0,
        }
    return values


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize(
    "game",
    [
        {},
        {"ruleset": "wrapped", "width": 7, "height": 7, "map": "hz_rings"},
        {"width": 8, "height": 5, "num_snakes": 2, "food_spawn_chance": 60},
        {"ruleset": "royale", "shrink_every_n_turns": 3, "width": 7, "height": 7},
        {"ruleset": "constrictor"},
    ],
    ids=str,
)
def test_pictures_are_what_the_table_says(kind, game):
    compared = 0
    for state in random_games(num_boards=3, turns=25, **game):
        boards, slots = living(state)
        for b, slot, picture in zip(boards, slots, kind.observe(state, boards, slots), strict=True):
            np.testing.assert_array_equal(picture, reference(state, b, slot, kind))
            compared += 1
    assert compared > 50


@pytest.mark.parametrize(
    "kind",
    [EgocentricPlanes(radius=24, reach=True), EgocentricPlanes(rotate=True, reach=True)],
    ids=str,
)
def test_the_largest_pictures_are_what_the_table_says(kind):
    for state in random_games(num_boards=1, turns=4, width=25, height=25):
        boards, slots = living(state)
        for b, slot, picture in zip(boards, slots, kind.observe(state, boards, slots), strict=True):
            np.testing.assert_array_equal(picture, reference(state, b, slot, kind))


@pytest.mark.parametrize("ruleset", ["standard", "wrapped", "constrictor"])
@pytest.mark.parametrize(("width", "height"), [(4, 3), (7, 7), (3, 14), (19, 6)])
def test_hungry_snakes_reach_what_the_table_says(ruleset, width, height):
    """Some fills take more moves than there is health."""
    kind = EgocentricPlanes(view="board", reach=True)
    random = np.random.default_rng(width)
    game = {"ruleset": ruleset, "width": width, "height": height, "num_snakes": 2}
    for state in random_games(num_boards=2, turns=4, food_spawn_chance=40, **game):
        boards, slots = living(state)
        state.arrays.health[boards, slots] = random.integers(1, 15, len(boards))
        for b, slot, picture in zip(boards, slots, kind.observe(state, boards, slots), strict=True):
            np.testing.assert_array_equal(picture, reference(state, b, slot, kind))


def test_a_wrapped_odd_board_shows_every_cell_in_a_full_window():
    state = board(7, 7, [(0, 0), (0, 1)], [(6, 6), (6, 5)], ruleset="wrapped")
    picture = EgocentricPlanes().observe(state, np.array([0]), np.array([0]))[0]
    row, column = np.argwhere(picture[..., PLANES.index("stronger_head")])[0]
    assert (row, column) == (
        6 + 1,
        6 - 1,
    )  # one down and one to the left of the middle of a 13 x 13 picture


def test_a_cyclic_window_shows_all_of_an_odd_board_from_wherever_the_head_is():
    """Each of the 121 cells is once in the picture of 11 × 11: food on all cells that are free, and
    bodies on the others.
    """
    for head in ((0, 0), (10, 4), (5, 5)):
        neck = (head[0], head[1] + 1)
        food = [(x, y) for x in range(11) for y in range(11) if (x, y) not in (head, neck)]
        state = board(11, 11, [head, neck], food=food)
        picture = EgocentricPlanes(radius=5, rotate=True, cyclic=True).observe(
            state, np.array([0]), np.array([0])
        )[0]
        shown = picture[..., PLANES.index("food")].astype(int) + (
            picture[..., PLANES.index("my_body")] > 0
        )
        assert (shown == 1).all()


@pytest.mark.parametrize("quarter_turns", [1, 2, 3])
def test_a_turned_board_looks_the_same_to_a_rotated_observation(quarter_turns):
    side = 11
    bodies = [[(3, 4), (3, 3), (4, 3)], [(7, 5), (8, 5)]]
    food = [(5, 5), (0, 10)]

    def turned(point):
        for _ in range(quarter_turns):
            point = (side - 1 - point[1], point[0])
        return point

    kind = EgocentricPlanes(rotate=True)
    pictures = []
    for turn in (lambda p: p, turned):
        state = board(
            side, side, *[[turn(p) for p in body] for body in bodies], food=[turn(p) for p in food]
        )
        pictures.append(kind.observe(state, np.zeros(2, int), np.arange(2)))
    np.testing.assert_array_equal(*pictures)


def test_relative_actions_are_turns_of_the_heading():
    state = board(11, 11, [(5, 5), (5, 4)], [(2, 2), (3, 2)], [(8, 8), (8, 9)], [(9, 1), (8, 1)])
    kind = EgocentricPlanes(rotate=True)
    slots = np.arange(4)
    moves = np.array(
        [kind.to_moves(state, np.zeros(4, int), slots, np.full(4, action)) for action in range(3)]
    ).T
    names = [[MOVE_NAMES[m] for m in row] for row in moves]
    assert names == [
        ["left", "up", "right"],
        ["down", "left", "up"],
        ["right", "down", "left"],
        ["up", "right", "down"],
    ]


def test_contract_restores_the_type():
    for kind in TYPES:
        assert observation_from_contract(kind.contract()) == kind


def test_what_is_not_known_is_refused():
    with pytest.raises(UnknownNameError, match="window"):
        EgocentricPlanes(view="windw")
    with pytest.raises(ConfigError, match="version is 2"):
        observation_from_contract({**EgocentricPlanes().contract(), "version": 2})
    with pytest.raises(ConfigError, match="not understood"):
        observation_from_contract({**EgocentricPlanes().contract(), "colour": "red"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 2.5}, "radius is 2.5; it must be an integer from 1 to 24"),
        ({"radius": 25}, "radius is 25"),
        ({"radius": 3, "view": "board"}, "only view='window' has one"),
        ({"rotate": "no"}, "rotate is 'no'; it must be true or false"),
        ({"cyclic": 1}, "cyclic is 1"),
        ({"reach": None}, "reach is None"),
        ({"type": "flat-num", "own_first": "no"}, "own_first is 'no'"),
        ({"type": "flat-num", "num_snakes": 2.0}, "num_snakes is 2.0"),
    ],
    ids=str,
)
def test_an_option_of_another_kind_is_refused(options, message):
    """`rotate: "no"` would count as true."""
    with pytest.raises(ConfigError, match=message):
        choose_observation(options, 2)
