"""The environments `gymnasium.make("procsnake/procgen-coinrun-v0")` and so on: one game of
Procgen.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from envs.common.errors import InvalidActionError
from envs.procgen.vector_env import ProcgenVectorEnv


class ProcgenEnv(gymnasium.Env[np.ndarray, int]):
    """One game of Procgen. Options, observations, actions and rewards are those of
    `ProcgenVectorEnv`.

    * `reset(seed=…)` restarts the sequence of levels. `reset()` in the middle of an episode starts
      the next level.
    * The observation of a terminal step is the last picture of the ended episode, never the next
      level's first one.
    * `info` has `level` (its seed), and at the end also `level_complete`.
    * With `render_mode="rgb_array"`, `render` returns uint8 (512, 512, 3).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}

    def __init__(self, game: str, **options: Any) -> None:
        self._batch = ProcgenVectorEnv(game, **{**options, "num_games": 1})
        self.render_mode = self._batch.render_mode
        self.observation_space = self._batch.single_observation_space
        self.action_space = self._batch.single_action_space
        self._running = False
        self._fresh = False
        self._picture: np.ndarray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        # After an ending the next level is there already.
        if seed is not None or not self._fresh:
            self._batch.restart(seed)
        self._running = True
        self._fresh = False
        self._draw()
        return self._batch.observations[0].copy(), {"level": int(self._batch.level_seeds[0])}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if not self._running:
            raise InvalidActionError("there is no running episode; call reset() first")
        self._batch.advance(np.array([action]))
        terminated = bool(self._batch.terminated[0])
        info: dict[str, Any] = {"level": int(self._batch.level_seeds[0])}
        if terminated:
            episode = self._batch.drain_episodes()
            info = {name: episode[name][0].item() for name in ("level", "level_complete")}
            self._running = False
            self._fresh = True
            return (
                self._batch.final_observations[0].copy(),
                float(self._batch.rewards[0]),
                True,
                False,
                info,
            )
        self._draw()
        return self._batch.observations[0].copy(), float(self._batch.rewards[0]), False, False, info

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        return self._picture

    def close(self) -> None:
        self._batch.close()

    def _draw(self) -> None:
        if self.render_mode:
            self._picture = self._batch.render()[0]  # type: ignore[index]


def make_batch(num_envs: int, game: str, **options: Any) -> ProcgenVectorEnv:
    """Make a batch of games for `gymnasium.make_vec`, which calls their number `num_envs`."""
    return ProcgenVectorEnv(game, num_games=num_envs, **options)
