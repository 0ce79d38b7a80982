"""One game at a time, for the environments of single players: a `BattlesnakeVectorEnv` of one game that can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.battlesnake.games import play_turn
from envs.battlesnake.observations import EgocentricPlanes, Observation, choose_observation
from envs.battlesnake.state import State
from envs.battlesnake.vector_env import BattlesnakeVectorEnv
from envs.errors import UnknownNameError

RENDER_MODES = ("ansi", "rgb_array", "human")
RENDER_FPS = 8


class SingleGame:
    """A game of `num_snakes` snakes that move by moves on the board, and its pictures.

    The vector environment starts the next game at once when one ends; `state` shows the board that ended it until `restart`.
    `options` are those of `BattlesnakeVectorEnv`, except `num_games` and `num_threads`. Raises what it raises, and
    `UnknownNameError` for a render mode that is not one of `RENDER_MODES` or None.
    """

    def __init__(self, observation: Observation | str | dict[str, Any] | None, render_mode: str | None, **options: Any) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise UnknownNameError("render mode", str(render_mode), RENDER_MODES)
        self.render_mode = render_mode
        self.batch = BattlesnakeVectorEnv(num_games=1, observation=EgocentricPlanes(view="board"), **options)
        self.state: State = self.batch.state
        self.observation = choose_observation(observation, self.state.num_snakes)
        self._window: Any = None

    def restart(self, seed: int | None) -> None:
        """Begin the next game; with a seed, the first game of that seed."""
        self.batch.restart(seed)
        self.state = self.batch.state

    def advance(self, moves: np.ndarray) -> None:
        """Play one turn; `moves`: int8 (num_snakes,), those of the dead are ignored. Outcomes are in `batch`."""
        before = self.batch.state.copy()
        self.batch.advance(moves)
        self.state = self.batch.state
        if (self.batch.terminated | self.batch.truncated).any():
            play_turn(before, moves[None, :], np.ones(1, np.bool_))
            self.state = before

    def observe(self, slots: Sequence[int]) -> np.ndarray:
        """What the snakes in `slots` see, (n, *shape of one observation)."""
        return self.observation.observe(self.state, *_pairs(slots))

    def action_mask(self, slots: Sequence[int]) -> np.ndarray:
        """Bool (n, actions): False where an action is certain death."""
        return self.observation.action_mask(self.state, *_pairs(slots))

    def to_moves(self, slots: Sequence[int], actions: Sequence[int]) -> np.ndarray:
        """Moves on the board, int8 (n,), for the actions of the snakes in `slots`."""
        return self.observation.to_moves(self.state, *_pairs(slots), np.asarray(actions))

    def render(self, names: Sequence[str]) -> str | np.ndarray | None:
        """Text, a picture, or None after showing it in the window, by the render mode; None without one."""
        if self.render_mode is None:
            return None
        if self.render_mode == "ansi":
            from envs.battlesnake.render.ansi import draw

            return draw(self.state, 0, names)
        from envs.battlesnake.render.rgb import rgb_array

        picture = rgb_array(self.state, 0, names=names)
        if self.render_mode == "rgb_array":
            return picture
        if self._window is None:
            from envs.battlesnake.render.window import Window

            self._window = Window("Battlesnake", fps=RENDER_FPS)
        self._window.show(picture)
        return None

    def close(self) -> None:
        """Close the window if one is open."""
        if self._window is not None:
            self._window.close()
            self._window = None


def _pairs(slots: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(len(slots), np.int64), np.asarray(slots, np.int64)
