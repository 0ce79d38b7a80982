"""The starter pack's observation types against a slow reading of what the starter pack's page says
of them.
"""

from __future__ import annotations

import numpy as np
import pytest

from envs.battlesnake import BattlesnakeVectorEnv, EgocentricPlanes, StarterPackObservation
from envs.battlesnake.adapters.single_game import SingleGame
from envs.battlesnake.observations import choose_observation, observation_from_contract
from envs.battlesnake.observing.starter_pack import KINDS
from envs.battlesnake.parallel_env import parallel_env
from envs.battlesnake.state import ALIVE
from envs.common.errors import ConfigError, UnknownNameError
from tests.envs.battlesnake.positions import board, living, random_games

GAMES = [
    {"num_snakes": 3},
    {"width": 8, "height": 6, "num_snakes": 2, "food_spawn_chance": 60},
    {"ruleset": "constrictor", "width": 7, "height": 7, "num_snakes": 4},
    {"ruleset": "royale", "shrink_every_n_turns": 3, "width": 5, "height": 20, "num_snakes": 2},
]


def reference(state, b, kind):
    """One list of planes: food, then a plane a snake; the frame is laid around them at the end."""
    planes = np.zeros((1 + state.num_snakes, state.height, state.width), int)
    for x, y in state.points(state.arrays.food[b]):
        planes[0, state.height - 1 - y, x] = 1
    for slot in range(state.num_snakes):
        if state.arrays.cause[b, slot] != ALIVE:
            continue
        body = state.body(b, slot)
        for entry, (x, y) in enumerate(body):
            value = len(body) - entry if kind.endswith("num") else 5 if entry == 0 else 1
            row = state.height - 1 - y
            planes[1 + slot, row, x] = max(planes[1 + slot, row, x], value)
    if kind.startswith("bordered"):
        planes = np.pad(planes, ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    if kind.startswith("max"):
        up = (21 - state.height) // 2
        left = (21 - state.width) // 2
        frame = ((0, 0), (up, 21 - state.height - up), (left, 21 - state.width - left))
        planes = np.pad(planes, frame, constant_values=-1)
    return np.moveaxis(planes, 0, -1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("game", GAMES, ids=str)
def test_pictures_are_what_the_starter_pack_says(kind, game):
    compared = 0
    for state in random_games(num_boards=3, turns=25, **game):
        observation = StarterPackObservation(kind, num_snakes=state.num_snakes)
        space = observation.space(state.width, state.height)
        boards, slots = living(state)
        for b, picture in zip(boards, observation.observe(state, boards, slots), strict=True):
            np.testing.assert_array_equal(picture, reference(state, b, kind))
            assert space.contains(picture)
            compared += 1
    assert compared > 50


@pytest.mark.parametrize("width", range(3, 22))
@pytest.mark.parametrize("frame", ["flat", "bordered", "max-bordered"])
def test_every_size_has_a_whole_board_in_the_frame(width, frame):
    """The starter pack's own max-bordered types crashed on boards of even size."""
    height = 24 - width
    state = board(
        width, height, [(0, 0), (1, 0)], [(width - 1, height - 1)], food=[(0, height - 1)]
    )
    kind = StarterPackObservation(f"{frame}-51s", num_snakes=2)
    picture = kind.observe(state, np.zeros(1, int), np.zeros(1, int))[0]
    assert kind.space(width, height).contains(picture)
    assert (picture[..., 0] >= 0).sum() == width * height
    (row, column), *_ = np.argwhere(picture[..., 0] == 1)
    assert picture[row + height - 1, column, 1] == picture[row, column + width - 1, 2] == 5
    if frame == "max-bordered":
        below = 21 - row - height
        right = 21 - column - width
        assert below - row in (0, 1)
        assert right - column in (0, 1)


def test_the_longest_snake_of_the_largest_board_lies_in_its_space():
    path = [(x, y if x % 2 else 24 - y) for x in range(25) for y in range(25)]
    state = board(25, 25, path + path[-1:] * 3)
    kind = StarterPackObservation("flat-num", num_snakes=1)
    picture = kind.observe(state, np.zeros(1, int), np.zeros(1, int))[0]
    assert picture.max() == 628
    assert kind.space(25, 25).contains(picture)


def test_own_first_moves_the_own_snake_and_keeps_the_order_of_the_others():
    state = board(7, 7, [(0, 0)], [(2, 2)], [(4, 4)], [(6, 6)])
    kind = StarterPackObservation("flat-51s", own_first=True)
    pictures = kind.observe(state, np.zeros(4, int), np.arange(4))
    plain = StarterPackObservation("flat-51s").observe(state, np.zeros(1, int), np.zeros(1, int))[0]
    for own, order in enumerate([[0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3], [3, 0, 1, 2]]):
        np.testing.assert_array_equal(pictures[own], plain[..., [0, *(1 + slot for slot in order)]])


def test_snakes_that_are_not_there_have_empty_channels():
    state = board(7, 7, [(0, 0)], [(2, 2)])
    picture = StarterPackObservation("bordered-51s", num_snakes=4).observe(
        state, np.zeros(1, int), np.zeros(1, int)
    )[0]
    assert picture.shape == (9, 9, 5)
    assert not picture[1:-1, 1:-1, 3:].any()
    assert (picture[0] == -1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_vector_environment_shows_them(kind):
    """Rows that act show the board; endings keep what was seen last; masks and moves are as with
    other types.
    """
    options = {"num_games": 8, "width": 7, "height": 6, "num_snakes": 3, "seed": 1}
    env = BattlesnakeVectorEnv(observation=kind, **options)
    other = BattlesnakeVectorEnv(observation=EgocentricPlanes(view="board"), **options)
    rng = np.random.default_rng(0)
    endings = 0
    env.restart()
    other.restart()
    for _ in range(30):
        for row in np.flatnonzero(env.valid):
            np.testing.assert_array_equal(
                env.observations[row], reference(env.state, row // 3, kind)
            )
        assert not env.observations[~env.valid].any()
        np.testing.assert_array_equal(env.action_mask, other.action_mask)
        actions = (rng.random(env.action_mask.shape) * env.action_mask).argmax(axis=1)
        env.advance(actions)
        other.advance(actions)
        np.testing.assert_array_equal(env.rewards, other.rewards)
        np.testing.assert_array_equal(env.terminated, other.terminated)
        for row in np.flatnonzero(env.terminated):
            last = env.final_observations[row]
            assert env.single_observation_space.contains(last)
            np.testing.assert_array_equal(
                last[..., 0] == 1, _food_of(kind, other.final_observations[row])
            )
            endings += 1
    assert endings > 10


def _food_of(kind, planes):
    """The food plane of a whole-board picture, laid into the frame of `kind`."""
    food = planes[..., 1] > 0
    if kind.startswith("flat"):
        return food
    if kind.startswith("bordered"):
        return np.pad(food, 1)
    return np.pad(food, ((7, 8), (7, 7)))


OPTIONS = [
    ("bordered-num", {}),
    ({"type": "bordered-num"}, {}),
    ({"type": "bordered-num", "version": 1, "own_first": True}, {"own_first": True}),
    (StarterPackObservation("bordered-num", num_snakes=5), {"num_snakes": 5}),
]


@pytest.mark.parametrize(("given", "fields"), OPTIONS, ids=str)
def test_all_environments_take_the_same_options(given, fields):
    expected = StarterPackObservation("bordered-num", **{"num_snakes": 3, **fields})
    assert (
        BattlesnakeVectorEnv(num_games=1, num_snakes=3, observation=given).observation == expected
    )
    assert SingleGame(given, None, num_snakes=3).observation == expected
    space = parallel_env(num_snakes=3, observation=given).observation_space("snake_0")
    assert space == expected.space(11, 11)


def test_options_without_a_type_are_those_of_the_planes_everywhere():
    assert (
        choose_observation({"radius": 4}, 2)
        == SingleGame({"radius": 4}, None).observation
        == EgocentricPlanes(radius=4)
    )


def test_contract_restores_the_type():
    for kind in KINDS:
        observation = StarterPackObservation(kind, own_first=True, num_snakes=3)
        assert observation_from_contract(observation.contract()) == observation


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"observation": "max-bordered-51s", "width": 22},
            ConfigError,
            "boards up to 21x21, this one is 22x11",
        ),
        (
            {"observation": {"type": "flat-51s", "num_snakes": 2}},
            ConfigError,
            "channels for 2 snakes, the game has 4",
        ),
        ({"observation": {"type": "flat-51s", "num_snakes": 0}}, ConfigError, "num_snakes is 0"),
        ({"observation": {"type": "flat-51s", "radius": 3}}, ConfigError, "not understood"),
        ({"observation": {"type": "flat-nmu"}}, UnknownNameError, "Did you mean 'flat-num'"),
    ],
)
def test_what_cannot_be_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        BattlesnakeVectorEnv(num_games=1, **options)
