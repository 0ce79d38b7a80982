"""`BatchEnv`: all that a trainer needs to know of any world.

A world plays many games at once. Its rows are *decision makers*: in Procgen a row is a game, in Battlesnake a row is one
snake's slot (row = game * rows_per_game + slot). Trainers see rows only, so they don't know which world they are in.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class BatchEnv(VectorEnv):
    """A Gymnasium `VectorEnv` (same-step autoreset) over preallocated arrays that are written in place.

    Two ways to drive it:

    * `restart(seed)` and `advance(actions)` change the arrays below in place and return nothing. Trainers use these; what
      must outlive the next `advance` has to be copied.
    * Gymnasium's `reset` and `step`, which return copies.

    Arrays (R = `num_envs` rows, A = number of actions), valid after `restart` and after each `advance`:

    ==================== ================= ===================================================================
    `observations`       space dtype (R, …) what each row sees now; the *next* episode's first after an ending
    `valid`              bool (R,)         the row is to act now; False while its snake is dead in a running game
    `action_mask`        bool (R, A)       actions worth taking (at least one a row), or None if the world has none
    `rewards`            float32 (R,)      for the action just taken; 0 for rows that were not valid
    `terminated`         bool (R,)         the row's episode ended by the world's rules with that action
    `truncated`          bool (R,)         it was cut off (turn limit): bootstrap from `final_observations`
    `final_observations` space dtype (R, …) last observation of the ended episode; defined where terminated | truncated
    ==================== ================= ===================================================================

    A row that was not valid when `advance` was called has reward 0 and neither flag, whatever action was passed for it.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    num_games: int
    rows_per_game: int
    env_steps_per_advance: int
    """Steps of all games together that one `advance` takes; more than `num_games` where actions are repeated."""

    observations: np.ndarray
    valid: np.ndarray
    action_mask: np.ndarray | None
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final_observations: np.ndarray

    def __init__(self, *, num_games: int, rows_per_game: int, observation_space: Space, action_space: Space) -> None:
        self.num_games, self.rows_per_game = num_games, rows_per_game
        self.num_envs = rows = num_games * rows_per_game
        self.env_steps_per_advance = num_games
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space, self.action_space = batch_space(observation_space, rows), batch_space(action_space, rows)
        shape = (rows, *observation_space.shape)  # type: ignore[misc]
        self.observations = np.zeros(shape, observation_space.dtype)
        self.final_observations = np.zeros(shape, observation_space.dtype)
        self.valid = np.ones(rows, np.bool_)
        self.action_mask = None
        self.rewards = np.zeros(rows, np.float32)
        self.terminated = np.zeros(rows, np.bool_)
        self.truncated = np.zeros(rows, np.bool_)

    @abstractmethod
    def restart(self, seed: int | None = None) -> None:
        """Start every game anew. The same seed gives the same games; None goes on with fresh ones."""

    @abstractmethod
    def advance(self, actions: np.ndarray) -> None:
        """Play one step of every game. `actions`: integers (R,); those of rows that are not valid are ignored."""

    @abstractmethod
    def drain_episodes(self) -> dict[str, np.ndarray]:
        """Columns of equal length E, one entry for each episode ended since the last call, in order of ending.

        Always there: `row` int32, `return` float32 (undiscounted sum of rewards), `length` int32 (actions taken).
        Worlds add their own (Battlesnake: `won`, `cause`, `snake_length`, …), bool, integer or float.
        """

    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        """How the episodes of rows `ended`, bool (R,), went which ended with the last step: arrays (R,), and `_name` masks."""
        return {}

    # Gymnasium's interface, the same for every world.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        self.restart(seed)
        return self.observations.copy(), self._info()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        self.advance(actions)
        info = self._info()
        ended = self.terminated | self.truncated
        if ended.any():
            info["final_obs"], info["_final_obs"] = _as_objects(self.final_observations, ended), ended
            info["final_info"], info["_final_info"] = self.final_info(ended), ended
        return self.observations.copy(), self.rewards.copy(), self.terminated.copy(), self.truncated.copy(), info

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"valid": self.valid.copy()}
        if self.action_mask is not None:
            info["action_mask"] = self.action_mask.copy()
        return info


def _as_objects(observations: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Gymnasium's form of `final_obs`: an object array with None where no episode ended."""
    out = np.full(len(observations), None, dtype=object)
    for row in np.flatnonzero(where):
        out[row] = observations[row].copy()
    return out
