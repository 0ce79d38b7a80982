"""Equivalent views of a world: a snake's board may be mirrored or turned, and what was a good move is one still.

Views are drawn when the world is played, not when the batch is learned from, so that the experience is the policy's own:
ratios and log-probabilities stay exact. A world tells its views by an attribute `views` (`Views`) or, for snakes, by its
observation type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from envs.api import BatchEnv
from envs.battlesnake.observations import EgocentricPlanes
from envs.errors import ConfigError
from envs.procgen.wrappers import layers

View = Callable[[np.ndarray], np.ndarray]


class Views(NamedTuple):
    """V ways to show a world with A actions; the first is the world as it is."""

    pictures: tuple[View, ...]
    """Each from observations (n, …) to observations of the same shape and dtype."""
    actions: np.ndarray
    """int64 (V, A): what each action in a view is in the world."""


def views_of(world: BatchEnv) -> Views:
    """The views of a world. Raises `ConfigError` if it has none but the one."""
    known = [layer for layer in layers(world) if hasattr(layer, "views") or hasattr(layer, "observation")]
    if known and isinstance(views := getattr(known[0], "views", None), Views):
        return views
    observation = getattr(known[0], "observation", None) if known else None
    if not isinstance(observation, EgocentricPlanes):
        raise ConfigError(
            f"symmetries: {type(world).__name__} with this observation has no symmetries; set symmetries to false"
        )
    if observation.rotate:
        return Views((_as_it_is, _mirrored), np.array([[0, 1, 2], [2, 1, 0]]))
    height, width = world.single_observation_space.shape[:2]  # type: ignore[index]
    return _of_the_square(quarter_turns=range(4) if height == width else (0, 2))


def _as_it_is(pictures: np.ndarray) -> np.ndarray:
    return pictures


def _mirrored(pictures: np.ndarray) -> np.ndarray:
    return pictures[:, :, ::-1]


def _of_the_square(quarter_turns: range | tuple[int, ...]) -> Views:
    """Turns to the left, each also mirrored afterwards; actions are up, down, left, right."""
    up, down, left, right = range(4)
    # In a picture that was turned to the left once, going up is what going right was.
    turned, mirrored = np.array([right, left, up, down]), np.array([up, down, right, left])
    pictures: list[View] = []
    actions = []
    for turns in quarter_turns:
        was = np.arange(4)
        for _ in range(turns):
            was = was[turned]
        pictures += [lambda p, k=turns: np.rot90(p, k, (1, 2)), lambda p, k=turns: _mirrored(np.rot90(p, k, (1, 2)))]
        actions += [was, was[mirrored]]
    return Views(tuple(pictures), np.array(actions))


class RandomViews:
    """Draws a view for each decision: show, let the policy decide, then translate its actions."""

    def __init__(self, world: BatchEnv, seed: int) -> None:
        self.views = views_of(world)
        self._random = np.random.default_rng(seed)
        self._drawn = np.zeros(0, np.int64)

    def show(self, observations: np.ndarray, action_mask: np.ndarray | None) -> None:
        """Change observations (n, …) and masks (n, A) in place to what is seen in the views that are drawn."""
        self._drawn = self._random.integers(len(self.views.pictures), size=len(observations))
        for k, picture in enumerate(self.views.pictures[1:], 1):
            rows = np.flatnonzero(self._drawn == k)
            observations[rows] = picture(observations[rows])
        if action_mask is not None:
            action_mask[:] = np.take_along_axis(action_mask, self.views.actions[self._drawn], axis=1)

    def in_the_world(self, actions: np.ndarray) -> np.ndarray:
        """What actions (n,), decided on what was shown last, are in the world."""
        return self.views.actions[self._drawn, actions]
