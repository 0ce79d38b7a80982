"""Equivalent views of a snake's board: mirrored, and also turned if the observation doesn't follow
the snake's heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from envs.api import View, Views
from envs.battlesnake.observations import EgocentricPlanes, Observation
from envs.battlesnake.state import DOWN, LEFT, RIGHT, UP


def views_of_snakes(observation: Observation, width: int, height: int) -> Views | None:
    """Return the views of an observation type on boards of that size; None for types whose pictures
    can't be turned.

    Rotated planes have two: as they are, and mirrored with left and right exchanged. Planes that
    aren't rotated have eight if the picture is square and four if it isn't: each quarter turn that
    keeps the shape, and each of those mirrored."""
    if not isinstance(observation, EgocentricPlanes):
        return None
    if observation.rotate:
        return Views((_as_it_is, _mirrored), np.array([[0, 1, 2], [2, 1, 0]]))
    rows, columns, _ = observation.space(width, height).shape
    if rows == columns:
        return _of_the_square(quarter_turns=range(4))
    return _of_the_square(quarter_turns=(0, 2))


def _as_it_is(pictures: np.ndarray) -> np.ndarray:
    return pictures


def _mirrored(pictures: np.ndarray) -> np.ndarray:
    return pictures[:, :, ::-1]


def _mirrored_after(turn: View, pictures: np.ndarray) -> np.ndarray:
    return _mirrored(turn(pictures))


def _of_the_square(quarter_turns: Sequence[int]) -> Views:
    """Return the views after so many quarter turns to the left, each also mirrored afterwards.
    Actions are up, down, left, right.
    """
    # In a picture that was turned to the left once, going up is what going right was.
    turned = np.array([RIGHT, LEFT, UP, DOWN])
    mirrored = np.array([UP, DOWN, RIGHT, LEFT])
    pictures: list[View] = []
    actions = []
    for turns in quarter_turns:
        was = np.arange(4)
        for _ in range(turns):
            was = was[turned]
        turn = partial(np.rot90, k=turns, axes=(1, 2))
        pictures += [turn, partial(_mirrored_after, turn)]
        actions += [was, was[mirrored]]
    return Views(tuple(pictures), np.array(actions))
