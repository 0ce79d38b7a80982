"""Battlesnake as a PettingZoo parallel environment: every snake is an agent."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

from envs.battlesnake.adapters.single_game import RENDER_FPS, RENDER_MODES, SingleGame
from envs.battlesnake.observations import Observation
from envs.common.errors import InvalidActionError


def parallel_env(**options: Any) -> BattlesnakeParallelEnv:
    """Make a `BattlesnakeParallelEnv`. The function has the name that PettingZoo's own worlds
    use.
    """
    return BattlesnakeParallelEnv(**options)


class BattlesnakeParallelEnv(ParallelEnv[str, np.ndarray, int]):
    """A game of Battlesnake by the official rules, in which the agents `snake_0`, `snake_1`, … move
    at the same time.

    * Observations, actions and rewards are those of `BattlesnakeVectorEnv`: see its `observation`
      and `rewards`.
    * An agent terminates when its snake dies or the game ends, and is truncated at `max_turns`. It
      then leaves `agents`.
    * `infos[agent]["action_mask"]` is int8 (actions,), 0 where an action is certain death.
    * A game is a function of the seed given to `reset` and the actions.
    * After the game's end, `step` returns empty dicts, as PettingZoo's own worlds do.

    `render_mode` is "ansi", "rgb_array" or "human" (needs pygame). All other options, and the
    errors that they raise, are those of `BattlesnakeVectorEnv`. `step` raises `InvalidActionError`
    before the first `reset`, for a missing action, and for an action outside its space.
    """

    metadata = {
        "name": "procsnake_battlesnake_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": RENDER_FPS,
    }

    def __init__(
        self,
        *,
        num_snakes: int = 4,
        observation: Observation | str | dict[str, Any] | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.render_mode = render_mode
        self._game = SingleGame(observation, render_mode, num_snakes=num_snakes, **options)
        self.possible_agents = [f"snake_{slot}" for slot in range(num_snakes)]
        self.agents: list[str] = []
        self._begun = False
        self.np_random = np.random.default_rng()
        """For wrappers that draw, as SuperSuit's `frame_skip`; the game has a generator of its
        own.
        """
        self._slots = {agent: slot for slot, agent in enumerate(self.possible_agents)}
        kind = self._game.observation
        state = self._game.state
        self.observation_spaces = {
            agent: kind.space(state.width, state.height) for agent in self.possible_agents
        }
        self.action_spaces: dict[str, Discrete] = {
            agent: Discrete(kind.num_actions) for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> Box:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        self._game.restart(seed)
        self._begun = True
        if seed is not None:
            self.np_random = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._show()
        return self._observations(self.agents), self._infos(self.agents)

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        if not self._begun:
            raise InvalidActionError("there is no running game; call reset() first")
        acting = self.agents
        if not acting:
            # PettingZoo's own worlds answer so after a game's end, and the wrappers that keep the
            # dead rely on it.
            return {}, {}, {}, {}, {}
        self._game.advance(self._moves(actions))
        batch = self._game.batch
        rewards = {agent: float(batch.rewards[self._slots[agent]]) for agent in acting}
        terminated = {agent: bool(batch.terminated[self._slots[agent]]) for agent in acting}
        truncated = {agent: bool(batch.truncated[self._slots[agent]]) for agent in acting}
        self.agents = [agent for agent in acting if not (terminated[agent] or truncated[agent])]
        self._show()
        return self._observations(acting), rewards, terminated, truncated, self._infos(acting)

    def render(self) -> str | np.ndarray | None:
        return self._game.render(self.possible_agents)

    def close(self) -> None:
        self._game.close()

    def _moves(self, actions: dict[str, int]) -> np.ndarray:
        for agent in self.agents:
            if agent not in actions or not self.action_spaces[agent].contains(actions[agent]):
                last = int(self.action_spaces[agent].n) - 1
                raise InvalidActionError(
                    f"action of {agent} is {actions.get(agent)!r}; it must be an integer in"
                    f" 0..{last}"
                )
        slots = [self._slots[agent] for agent in self.agents]
        moves = np.zeros(len(self.possible_agents), np.int8)
        moves[slots] = self._game.to_moves(slots, [int(actions[agent]) for agent in self.agents])
        return moves

    def _observations(self, agents: list[str]) -> dict[str, np.ndarray]:
        return dict(
            zip(agents, self._game.observe([self._slots[agent] for agent in agents]), strict=True)
        )

    def _infos(self, agents: list[str]) -> dict[str, dict[str, Any]]:
        masks = self._game.action_mask([self._slots[agent] for agent in agents]).astype(np.int8)
        return {agent: {"action_mask": mask} for agent, mask in zip(agents, masks, strict=True)}

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()
