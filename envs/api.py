"""`BatchEnv`: all that a trainer needs to know of any world.

A world plays many games at once. Its rows are *decision makers*: in Procgen a row is a game, in
Battlesnake a row is one snake's slot (row = game * rows_per_game + slot). Trainers see rows only,
so they don't know which world they are in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from envs.common.errors import InvalidActionError
from envs.pictures import picture_of

Evaluation = Literal["episodes", "opponents", "levels"]
View = Callable[[np.ndarray], np.ndarray]


class Views(NamedTuple):
    """V equivalent ways to show a world with A actions. The first shows the world as it is.

    For example, a snake's board may be mirrored or turned: if a move was good, the mirrored or
    turned move is as good."""

    pictures: tuple[View, ...]
    """V functions. Each takes observations (n, …) and returns observations of the same shape and
    dtype.
    """
    actions: np.ndarray
    """The action of the world that each action in a view stands for, int64 (V, A)."""


class BatchEnv(VectorEnv):
    """A Gymnasium `VectorEnv` (same-step autoreset) over arrays that hold all rows.

    There are two ways to drive it:

    * `restart(seed)` and `advance(actions)` change the arrays below and return nothing. Trainers
      use these. Copy what you need after the next call, and ask the world for its arrays again:
      most are written in place, but some are replaced.
    * Gymnasium's `reset` and `step`, which return copies. `step` drains the episodes itself: it
      reports them only in `final_info`, so callers of `step` needn't ask for them.

    These are the arrays, for R = `num_envs` rows and A actions. They hold after `restart` and after
    each `advance`:

    ==================== ================== ======================================================
    `observations`       space dtype (R, …) what each row sees now; after an ending, the *next*
                                            episode's first observation
    `valid`              bool (R,)          the row is to act now; False while its snake is dead
                                            in a running game
    `action_mask`        bool (R, A)        actions worth taking, at least one per row, or None if
                                            the world has no mask
    `rewards`            float32 (R,)       for the action just taken; 0 for rows that were not
                                            valid
    `terminated`         bool (R,)          the row's episode ended by the world's rules with that
                                            action
    `truncated`          bool (R,)          it was cut off (turn limit): bootstrap from
                                            `final_observations`
    `final_observations` space dtype (R, …) last observation of the ended episode; defined where
                                            terminated or truncated
    ==================== ================== ======================================================

    A row that was not valid when `advance` was called has reward 0 and neither flag, whatever
    action was passed for it.

    A world must define `restart`, `advance` and `drain_episodes`. All other methods have defaults
    that suit most worlds. `envs.compliance.check_world` checks all of them."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    num_games: int
    rows_per_game: int
    env_steps_per_advance: int
    """The number of steps that the next `advance` takes, over all games. It is more than
    `num_games` if actions are repeated. It changes where a curriculum's stages differ, so it is
    read before each `advance`."""
    observation_contract: dict[str, Any] | None = None
    """The observation type in the form of a policy's card: `type` str, `version` int and options,
    in JSON's types. It is None if the world has only one type of observation."""
    views: Views | None = None
    """The equivalent ways to show the world, for trainers with `symmetries`, or None if there is
    only one.
    """
    evaluation: Evaluation = "episodes"
    """How a policy is measured in this world. Any world can measure it by the returns of its
    episodes. Battlesnake measures it in games against opponents, and Procgen on the levels of its
    training and on others."""
    samples_actions: bool = False
    """Whether a policy that is measured by episodes draws its actions by their probabilities, as
    Procgen's benchmark does. If not, it takes the likeliest action."""

    single_observation_space: Box
    single_action_space: Discrete
    observations: np.ndarray
    valid: np.ndarray
    action_mask: np.ndarray | None
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final_observations: np.ndarray

    def __init__(
        self, *, num_games: int, rows_per_game: int, observation_space: Box, action_space: Discrete
    ) -> None:
        self.num_games = num_games
        self.rows_per_game = rows_per_game
        self.num_envs = rows = num_games * rows_per_game
        self.env_steps_per_advance = num_games
        self.single_observation_space = observation_space
        self.single_action_space = action_space
        self.observation_space = batch_space(observation_space, rows)
        self.action_space = batch_space(action_space, rows)
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
        """Restart every game. The same seed gives the same games; None starts new ones."""

    @abstractmethod
    def advance(self, actions: np.ndarray) -> None:
        """Play one step of every game. `actions` are integers (R,); those of rows that are not
        valid are ignored.
        """

    def checked_actions(self, actions: np.ndarray) -> np.ndarray:
        """Return `actions` as an array, for `advance`. Raises `InvalidActionError` if they aren't
        integers (R,).
        """
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise InvalidActionError(
                f"actions have shape {actions.shape} and dtype {actions.dtype}; expected integers"
                f" of shape ({self.num_envs},)"
            )
        return actions

    @abstractmethod
    def drain_episodes(self) -> dict[str, np.ndarray]:
        """Return columns with one entry for each episode that ended since the last call, in the
        order of their ends.

        There always are `row` int32, `return` float32 (undiscounted sum of rewards) and `length`
        int32 (actions taken). Worlds add columns of their own, bool, integer or float (Battlesnake:
        `won`, `cause`, `snake_length`, …)."""

    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        """Return the results of the episodes that ended with the last step, in the form of
        Gymnasium's `info`.

        `ended`, bool (R,), says in which rows an episode ended. Each result is an array (R,), with
        a mask `_name` beside it. With the default, {}, Gymnasium's users get the columns of
        `drain_episodes`."""
        return {}

    def picture(self, game: int = 0) -> np.ndarray:
        """Return a picture for people of game `game` as it is now, uint8 (H, W, 3), with H and W
        even and always the same.

        Films and `procsnake watch` show it. The default shows what the game's first row sees
        (`envs.pictures.picture_of`)."""
        return picture_of(
            self.observations[game * self.rows_per_game], self.single_observation_space
        )

    def remember(self, network: Any) -> None:
        """Receive the current policy, a torch module. Trainers call this before each rollout.

        The default does nothing. A world that plays against past selves keeps a copy. In this
        method and the two below, a wrapper handles only its own state, because `train.worlds.state`
        calls each layer."""

    def progress(self) -> Any:
        """Return the world's state for a checkpoint: pools of opponents, the stage of a curriculum,
        statistics, but no games.

        This consists of plain values, NumPy arrays and tensors on the CPU, so that pickle can store
        it. It is None, the default, if there is nothing to keep."""
        return None

    def carry_on(self, progress: Any, network: Any) -> None:
        """Continue from what `progress` returned in an earlier session. The next call is `restart`.

        It is called only if `progress` wasn't None. `network` is a torch module of the policy's
        kind, which may be copied."""

    # Gymnasium's interface, the same for every world.

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        self.restart(seed)
        return self.observations.copy(), self._info()

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        self.advance(actions)
        info = self._info()
        ended = self.terminated | self.truncated
        if ended.any():
            info["final_obs"] = _as_objects(self.final_observations, ended)
            info["_final_obs"] = ended
            final_info = self.final_info(ended)
            # Whoever drives a world this way doesn't drain the columns, and they would grow with
            # every episode.
            columns = self.drain_episodes()
            info["final_info"] = final_info or by_row(columns, self.num_envs)
            info["_final_info"] = ended
        return (
            self.observations.copy(),
            self.rewards.copy(),
            self.terminated.copy(),
            self.truncated.copy(),
            info,
        )

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"valid": self.valid.copy()}
        if self.action_mask is not None:
            info["action_mask"] = self.action_mask.copy()
        return info


def by_row(columns: Mapping[str, np.ndarray], num_rows: int) -> dict[str, np.ndarray]:
    """Convert columns of episodes that ended in one step to the form of Gymnasium's `info`. One
    column is `row`.

    Each becomes an array (R,), which is 0 where no episode ended, with a mask `_name` beside it.
    """
    rows = columns["row"]
    ended = np.zeros(num_rows, np.bool_)
    ended[rows] = True
    info: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        info[name] = np.zeros(num_rows, column.dtype)
        info[f"_{name}"] = ended
        info[name][rows] = column
    return info


def _as_objects(observations: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return `final_obs` as Gymnasium has it: an object array with None where no episode ended."""
    out = np.full(len(observations), None, dtype=object)
    for row in np.flatnonzero(where):
        out[row] = observations[row].copy()
    return out
