"""Shows a world in one of its equivalent views (`envs.api.Views`), drawn for each decision.

Views are drawn when the world is played, not when the batch is learned from. So the experience is
the policy's own, and ratios and log-probabilities stay exact."""

from __future__ import annotations

import numpy as np

from envs.api import BatchEnv, Views
from envs.common.errors import ConfigError


def views_of(world: BatchEnv) -> Views:
    """Return the views of a world. Raises `ConfigError` if it has only one."""
    if world.views is None:
        raise ConfigError(
            f"symmetries: {type(world).__name__} with this observation has no symmetries; set"
            " symmetries to false"
        )
    return world.views


class RandomViews:
    """Draws a view for each decision. Call `show`, let the policy decide, then translate its
    actions by `in_the_world`.
    """

    def __init__(self, world: BatchEnv, seed: int) -> None:
        self.views = views_of(world)
        self._random = np.random.default_rng(seed)
        self._drawn = np.zeros(0, np.int64)

    def show(self, observations: np.ndarray, action_mask: np.ndarray | None) -> None:
        """Draw a view for each of n decisions, and change observations (n, …) and masks (n, A) in
        place to these views.
        """
        self._drawn = self._random.integers(len(self.views.pictures), size=len(observations))
        for k, picture in enumerate(self.views.pictures[1:], 1):
            rows = np.flatnonzero(self._drawn == k)
            observations[rows] = picture(observations[rows])
        if action_mask is not None:
            action_mask[:] = np.take_along_axis(
                action_mask, self.views.actions[self._drawn], axis=1
            )

    def in_the_world(self, actions: np.ndarray) -> np.ndarray:
        """Translate actions (n,), which were decided on what was shown last, into actions in the
        world.
        """
        return self.views.actions[self._drawn, actions]
