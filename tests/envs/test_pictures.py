from __future__ import annotations

import numpy as np
import pytest
from gymnasium.spaces import Box

import envs
from envs.pictures import as_text, picture_of


@pytest.mark.parametrize(
    "shape",
    [(5,), (3, 5), (3, 5, 1), (3, 5, 3), (3, 5, 12), (84, 84, 3), (300, 7, 1), (2, 3, 5, 1)],
)
def test_any_observation_becomes_a_picture_of_even_size(shape):
    space = Box(0, 9, shape, np.uint8)
    picture = picture_of(space.sample(), space)
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert not np.any(np.array(picture.shape[:2]) % 2)


def test_colours_stay_and_other_channels_show_the_brightest():
    colours = np.zeros((1, 2, 3), np.uint8)
    colours[0, 0] = (200, 10, 0)
    colours[0, 1] = (0, 0, 255)
    picture = picture_of(colours, Box(0, 255, colours.shape, np.uint8))
    assert picture[0, 0].tolist() == [200, 10, 0]
    assert picture[-1, -1].tolist() == [0, 0, 255]
    planes = np.zeros((1, 2, 4), np.float32)
    planes[0, 1] = [0, 0.5, 0.2, 0]
    picture = picture_of(planes, Box(-1, 1, planes.shape, np.float32))
    assert picture[0, 0].tolist() == [128] * 3
    assert picture[0, -1].tolist() == [191] * 3


def test_without_bounds_the_observation_gives_them():
    unbounded = np.array([-3.0, 7.0, 2.0], np.float32)
    picture = picture_of(unbounded, Box(-np.inf, np.inf, (3,), np.float32))
    third = picture.shape[1] // 3
    assert picture[0, ::third, 0].tolist() == [0, 255, 128]


def test_text_has_two_pixels_in_a_character():
    picture = np.zeros((4, 3, 3), np.uint8)
    picture[0, 0] = (255, 0, 0)
    picture[1, 0] = (0, 0, 255)
    picture[2:, 2] = 255
    first, second = as_text(picture, color=True, columns=3).split("\n")
    assert first.startswith("\x1b[38;2;255;0;0m\x1b[48;2;0;0;255m▀")
    assert first.endswith("\x1b[0m")
    assert second.count("▀") == 3
    picture[:2] = 0
    assert as_text(picture, color=False, columns=3) == "   \n  █"


def test_text_fits_the_terminal():
    lines = as_text(np.zeros((512, 512, 3), np.uint8), color=False, columns=20).split("\n")
    assert {len(line) for line in lines} == {20}
    assert len(lines) == 10
    assert len(as_text(np.zeros((900, 30, 3), np.uint8), color=False).split("\n")) <= 24


def test_each_world_shows_its_games():
    """Battlesnake draws its board; Procgen shows what is seen, or the library's large picture where
    it was asked for.
    """
    snakes = envs.make("battlesnake", num_games=2, width=7, height=7)
    snakes.restart(0)
    assert snakes.picture(1).shape == (256, 256, 3)
    assert (snakes.picture(0) != snakes.picture(1)).any()
    for options, side in (({}, 128), ({"render_mode": "rgb_array"}, 512)):
        game = envs.make("procgen/coinrun", num_games=2, frame_stack=2, **options)
        game.restart(0)
        assert game.picture(1).shape == (side, side, 3)
        game.close()
