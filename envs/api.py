"""`BatchEnv`: all that a trainer needs to know of any world.

A world plays many games at once. Its rows are *decision makers*: in Procgen a row is a game, in Battlesnake a row is one
snake's slot (row = game * rows_per_game + slot). Trainers see rows only, so they don't know which world they are in.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from envs.pictures import picture_of

Evaluation = Literal["episodes", "opponents", "levels"]
View = Callable[[np.ndarray], np.ndarray]


class Views(NamedTuple):
    """V equivalent ways to show a world with A actions; the first is the world as it is.

    A snake's board may be mirrored or turned, and what was a good move is one still.
    """

    pictures: tuple[View, ...]
    """V functions, each from observations (n, …) to observations of the same shape and dtype."""
    actions: np.ndarray
    """int64 (V, A): what each action in a view is in the world."""


class BatchEnv(VectorEnv):
    """A Gymnasium `VectorEnv` (same-step autoreset) over preallocated arrays that are written in place.

    There are two ways to drive it:

    * `restart(seed)` and `advance(actions)` change the arrays below in place and return nothing. Trainers use these. Copy what
      you need after the next `advance`.
    * Gymnasium's `reset` and `step`, which return copies.

    These are the arrays, for R = `num_envs` rows and A actions. They hold after `restart` and after each `advance`:

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

    A world has to define `restart`, `advance` and `drain_episodes`. What else is declared here has a default that suits most
    worlds. `envs.compliance.check_world` tries all of it.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    num_games: int
    rows_per_game: int
    env_steps_per_advance: int
    """How many steps of games one `advance` takes, over all games. It is more than `num_games` where actions are repeated."""
    observation_contract: dict[str, Any] | None = None
    """The observation type as a policy's card tells it: `type` str, `version` int and options, JSON-able. None: the world has
    one type of observation, and its name says which."""
    views: Views | None = None
    """Equivalent ways to show the world, for trainers with `symmetries`; None: there is only one."""
    evaluation: Evaluation = "episodes"
    """How a policy is measured here: by the returns of its episodes, which any world can do; in games against opponents, on
    Battlesnake; on the levels of its training and on others, in Procgen."""

    single_observation_space: Box
    single_action_space: Discrete
    observations: np.ndarray
    valid: np.ndarray
    action_mask: np.ndarray | None
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final_observations: np.ndarray

    def __init__(self, *, num_games: int, rows_per_game: int, observation_space: Box, action_space: Discrete) -> None:
        self.num_games, self.rows_per_game = num_games, rows_per_game
        self.num_envs = rows = num_games * rows_per_game
        self.env_steps_per_advance = num_games
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space, self.action_space = batch_space(observation_space, rows), batch_space(action_space, rows)
        shape = (rows, *observation_space.shape)
        self.observations = np.zeros(shape, observation_space.dtype)
        self.final_observations = np.zeros(shape, observation_space.dtype)
        self.valid = np.ones(rows, np.bool_)
        self.action_mask = None
        self.rewards = np.zeros(rows, np.float32)
        self.terminated = np.zeros(rows, np.bool_)
        self.truncated = np.zeros(rows, np.bool_)

    @abstractmethod
    def restart(self, seed: int | None = None) -> None:
        """Start every game anew. The same seed gives the same games; None continues with fresh ones."""

    @abstractmethod
    def advance(self, actions: np.ndarray) -> None:
        """Play one step of every game. `actions` are integers (R,); those of rows that are not valid are ignored."""

    @abstractmethod
    def drain_episodes(self) -> dict[str, np.ndarray]:
        """Return columns with one entry for each episode that ended since the last call, in the order of their ends.

        There always are `row` int32, `return` float32 (undiscounted sum of rewards) and `length` int32 (actions taken). Worlds
        add columns of their own, bool, integer or float (Battlesnake: `won`, `cause`, `snake_length`, …).
        """

    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        """How the episodes of rows `ended`, bool (R,), went which ended with the last step: arrays (R,), and `_name` masks."""
        return {}

    def picture(self, game: int = 0) -> np.ndarray:
        """How game `game` looks to people as it stands: uint8 (H, W, 3), H and W even and always the same.

        Films and `procsnake play` show it. The default shows what the game's first row sees (`envs.pictures.picture_of`).
        """
        return picture_of(self.observations[game * self.rows_per_game], self.single_observation_space)

    def remember(self, network: Any) -> None:
        """Get to know the policy as it is now, a torch module; trainers call this before each rollout.

        The default does nothing. A world that plays against past selves keeps a copy. A wrapper answers for itself alone here
        and in the two methods below: `train.worlds.state` asks each layer.
        """

    def progress(self) -> Any:
        """What a checkpoint keeps of the world: pools of opponents, the stage of a curriculum, statistics; no games.

        Plain values, NumPy arrays and tensors on the CPU, which pickle can take; None (the default) if there is nothing.
        """
        return None

    def carry_on(self, progress: Any, network: Any) -> None:
        """Go on from what `progress` returned in an earlier session; the next call is `restart`.

        It is called only if that wasn't None. `network` is a torch module of the policy's kind, to be copied.
        """

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
