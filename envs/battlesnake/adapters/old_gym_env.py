"""The Gymnasium environment for programs that still use gym 0.26, as Procgen's users do."""

from __future__ import annotations

from typing import Any

import gym
import numpy as np

from envs.battlesnake.gym_env import BattlesnakeEnv


class OldGymBattlesnakeEnv(gym.Env):
    """`BattlesnakeEnv` with old gym's spaces. Apart from the spaces, the interface of gym 0.26 is
    the same.
    """

    metadata = BattlesnakeEnv.metadata

    def __init__(self, **options: Any) -> None:
        self._env = BattlesnakeEnv(**options)
        self.render_mode = self._env.render_mode
        space = self._env.observation_space
        self.observation_space = gym.spaces.Box(
            space.low, space.high, space.shape, space.low.dtype.type
        )
        self.action_space = gym.spaces.Discrete(int(self._env.action_space.n))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        return self._env.reset(seed=seed, options=options)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return self._env.step(action)

    def render(self) -> str | np.ndarray | None:  # type: ignore[override]
        return self._env.render()

    def close(self) -> None:
        self._env.close()
