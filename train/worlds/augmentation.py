"""Changes the pictures that a policy sees in training at random (`agents.augment`). It works for
every trainer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from agents.augment import AUGMENTATIONS, augment
from envs.api import BatchEnv
from envs.common.errors import ConfigError, UnknownNameError
from envs.wrappers import BatchWrapper


class AugmentedWorld(BatchWrapper):
    """Applies the augmentations `names`, one after the other, to the picture of each row, with new
    draws at each step.

    The policy acts on the same picture that it learns from, as in RAD (Laskin et al. 2020, arXiv
    2004.14990). So the algorithms' ratios and targets stay correct. Raises `ConfigError` if
    observations aren't uint8 pictures (H, W, C) or there are no names, and `UnknownNameError` for
    names that don't exist."""

    def __init__(self, world: BatchEnv, names: Sequence[str], *, seed: int = 0) -> None:
        space = world.single_observation_space
        if space.dtype != np.uint8 or len(space.shape or ()) != 3:
            raise ConfigError(
                f"env.options.augment works on uint8 pictures (H, W, C), not on {space}"
            )
        if not isinstance(names, list | tuple) or not names:
            raise ConfigError(
                f"env.options.augment is {names!r}; it must be a list of names, e.g. [translate,"
                " color-jitter]"
            )
        for name in names:
            if name not in AUGMENTATIONS:
                raise UnknownNameError("augmentation", str(name), AUGMENTATIONS)
        super().__init__(world)
        self.names = tuple(names)
        self._seed = seed
        self._generator = torch.Generator().manual_seed(seed)

    def restart(self, seed: int | None = None) -> None:
        if seed is not None:
            self._generator.manual_seed(self._seed + seed)
        super().restart(seed)

    def _take_over(self) -> None:
        super()._take_over()
        self.observations = self._changed(self.world.observations)
        ended = np.flatnonzero(self.terminated | self.truncated)
        if len(ended):
            self.final_observations = self.world.final_observations.copy()
            self.final_observations[ended] = self._changed(self.final_observations[ended])

    def _changed(self, pictures: np.ndarray) -> np.ndarray:
        return augment(torch.from_numpy(pictures), self.names, self._generator).contiguous().numpy()
