from __future__ import annotations

import numpy as np
import pytest

import envs
from envs.common.errors import ConfigError
from tests.envs.battlesnake.positions import board, living, random_games
from train.worlds.symmetry import RandomViews, views_of

SIDE = 11


def reflected(x: int, y: int) -> tuple[int, int]:
    return SIDE - 1 - x, y


def turned_left(x: int, y: int) -> tuple[int, int]:
    return SIDE - 1 - y, x


def moved(state, place):
    """The first board of `state`, drawn anew with each point put where `place` says."""
    a = state.arrays
    slots = [slot for slot in range(a.cause.shape[1]) if a.cause[0, slot] == 0]
    bodies = [[place(*point) for point in state.body(0, slot)] for slot in slots]
    food = [place(*point) for point in state.points(a.food[0])]
    return slots, board(
        SIDE, SIDE, *bodies, food=food, health=[int(a.health[0, slot]) for slot in slots]
    )


def by_geometry(view: int, rotate: bool):
    """Where view `view` puts a point of the board: turned to the left view // 2 times, then
    mirrored if it is odd.
    """
    turns, mirrored = (0, view) if rotate else divmod(view, 2)

    def place(x: int, y: int) -> tuple[int, int]:
        for _ in range(turns):
            x, y = turned_left(x, y)
        return reflected(x, y) if mirrored else (x, y)

    return place


@pytest.mark.parametrize(
    "observation",
    [{"rotate": True, "radius": 4}, {"rotate": True}, {"view": "board"}, {"view": "window"}],
    ids=str,
)
def test_a_view_is_what_a_snake_on_the_transformed_board_sees_with_actions_to_the_same_places(
    observation,
):
    world = envs.make("battlesnake", num_games=1, observation=observation)
    seen = world.observation
    views = views_of(world)
    compared = 0
    for state in random_games(num_boards=1, turns=70, seed=3):
        slots = living(state)[1]
        if state.arrays.turn[0] < 2 or not len(slots):
            continue
        here = np.zeros(len(slots), int), slots
        for view, picture in enumerate(views.pictures):
            place = by_geometry(view, seen.rotate)
            order, other = moved(state, place)
            there = np.zeros(len(slots), int), np.array([order.index(slot) for slot in slots])
            np.testing.assert_array_equal(
                picture(seen.observe(state, *here)), seen.observe(other, *there)
            )
            mask = np.take_along_axis(
                seen.action_mask(state, *here), views.actions[[view] * len(slots)], axis=1
            )
            np.testing.assert_array_equal(mask, seen.action_mask(other, *there))
            for action in range(seen.num_actions):
                in_view = seen.to_moves(other, *there, np.full(len(slots), action))
                in_world = seen.to_moves(
                    state, *here, np.full(len(slots), views.actions[view, action])
                )
                for slot, there_slot, a, b in zip(slots, there[1], in_view, in_world, strict=True):
                    assert step(other.body(0, there_slot)[0], a) == place(
                        *step(state.body(0, slot)[0], b)
                    )
            compared += len(slots)
    assert compared > 200


def step(point: tuple[int, int], move: int) -> tuple[int, int]:
    dx, dy = ((0, 1), (0, -1), (-1, 0), (1, 0))[move]
    return point[0] + dx, point[1] + dy


def test_an_oblong_board_is_not_turned_on_its_side():
    world = envs.make("battlesnake", num_games=1, width=7, height=11, observation={"view": "board"})
    shapes = {picture(world.observations).shape for picture in views_of(world).pictures}
    assert shapes == {world.observations.shape}
    assert len(views_of(world).pictures) == 4


def test_views_are_drawn_evenly_and_actions_come_back():
    world = envs.make("battlesnake", num_games=1)
    views = RandomViews(world, seed=0)
    shown = np.zeros((4000, 1, 2, 1), np.uint8)
    shown[:, 0, 0, 0] = 1
    mask = np.tile([True, True, False], (4000, 1))
    views.show(shown, mask)
    mirrored = shown[:, 0, 1, 0] == 1
    assert 0.45 < mirrored.mean() < 0.55
    np.testing.assert_array_equal(mask[mirrored], np.tile([False, True, True], (mirrored.sum(), 1)))
    np.testing.assert_array_equal(views.in_the_world(np.zeros(4000, int)), np.where(mirrored, 2, 0))


def test_worlds_without_symmetries_say_so():
    import tests.train.small_worlds  # noqa: F401

    with pytest.raises(ConfigError, match="no symmetries"):
        views_of(envs.make("identity"))
    with pytest.raises(ConfigError, match="no symmetries"):
        views_of(envs.make("battlesnake", num_games=1, observation="flat-51s"))
