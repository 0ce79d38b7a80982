"""The environment `gymnasium.make("procsnake/Battlesnake-v0")`: one learning snake plays against
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.battlesnake.adapters.opponents import Opponent, RandomSafely, moves_of, name_of, seated
from envs.battlesnake.adapters.single_game import RENDER_FPS, RENDER_MODES, SingleGame
from envs.battlesnake.observations import Observation
from envs.common.errors import InvalidActionError


class BattlesnakeEnv(gymnasium.Env[np.ndarray, int]):
    """A game of Battlesnake by the official rules, played by the snake in slot 0 against
    `opponents`.

    * `observation` decides observation and actions. The default is `EgocentricPlanes(rotate=True)`:
      uint8 planes, and the actions left, ahead, right.
    * `rewards` are those of `BattlesnakeVectorEnv`. The default is the preset `win`: 1 for winning,
      -1 for dying.
    * The episode terminates when the snake dies or the game ends, and is truncated at `max_turns`.
    * `info["action_mask"]` is int8 (actions,), 0 where an action is certain death, in the form that
      `action_space.sample(mask)` takes. At the end `info` also has `won`, `cause`, `killer`,
      `snake_length`, `food_eaten`, `hazard_turns`, `length` (turns).
    * `opponents` is one opponent for all other slots, or a sequence of num_snakes - 1. By default
      opponents draw evenly among the moves that are not certain death.
    * An episode is a function of the seed given to `reset` and the actions, as long as the
      opponents depend on the state alone.
    * `render_mode` is "ansi", "rgb_array" or "human" (needs pygame).

    All other options are those of `BattlesnakeVectorEnv`: `width`, `height`, `num_snakes`,
    `ruleset`, `map`, `max_turns`, …

    Raises `ConfigError` or `UnknownNameError` for impossible options, and `InvalidActionError` for
    an action outside the action space."""

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": RENDER_FPS}
    observation_space: Box
    action_space: Discrete

    def __init__(
        self,
        *,
        opponents: Opponent | Sequence[Opponent] | None = None,
        num_snakes: int = 4,
        observation: Observation | str | dict[str, Any] | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.render_mode = render_mode
        self._game = SingleGame(observation, render_mode, num_snakes=num_snakes, **options)
        self._opponents = seated(
            opponents, num_snakes - 1, default=RandomSafely(lambda: self.np_random)
        )
        state = self._game.state
        self.observation_space = self._game.observation.space(state.width, state.height)
        self.action_space = Discrete(self._game.observation.num_actions)
        self._running = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._game.restart(seed)
        self._running = True
        self._show()
        return self._game.observe([0])[0], self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if not self._running:
            raise InvalidActionError("there is no running game; call reset() first")
        if not self.action_space.contains(action):
            raise InvalidActionError(
                f"action is {action!r}; it must be an integer in 0..{int(self.action_space.n) - 1}"
            )
        self._game.advance(self._moves(int(action)))
        batch = self._game.batch
        terminated = bool(batch.terminated[0])
        truncated = bool(batch.truncated[0])
        self._running = not (terminated or truncated)
        self._show()
        return (
            self._game.observe([0])[0],
            float(batch.rewards[0]),
            terminated,
            truncated,
            self._info(),
        )

    def render(self) -> str | np.ndarray | None:  # type: ignore[override]
        return self._game.render(["you", *(name_of(opponent) for opponent in self._opponents)])

    def action_masks(self) -> np.ndarray:
        """Return bool (actions,): False where an action is certain death. MaskablePPO (sb3-contrib)
        asks for it.
        """
        mask: np.ndarray = self._game.action_mask([0])[0]
        return mask

    def close(self) -> None:
        self._game.close()

    def _moves(self, action: int) -> np.ndarray:
        state = self._game.state
        valid = self._game.batch.valid
        moves = np.zeros(state.num_snakes, np.int8)
        moves[0] = self._game.to_moves([0], [action])[0]
        for slot, opponent in enumerate(self._opponents, 1):
            if valid[slot]:
                moves[slot] = moves_of(opponent, state, np.zeros(1, np.int64), slot)[0]
        return moves

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"action_mask": self._game.action_mask([0])[0].astype(np.int8)}
        episodes = self._game.batch.drain_episodes()
        for entry in np.flatnonzero(episodes.pop("row") == 0):
            info |= {
                name: column[entry].item()
                for name, column in episodes.items()
                if name not in ("return", "game")
            }
        return info

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()
