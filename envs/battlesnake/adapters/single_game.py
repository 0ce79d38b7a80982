"""One game at a time, for the Gymnasium and PettingZoo environments: a `BattlesnakeVectorEnv` of
one game, and its pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.battlesnake.games import play_turn
from envs.battlesnake.observations import EgocentricPlanes, Observation, choose_observation
from envs.battlesnake.state import State
from envs.battlesnake.vector_env import BattlesnakeVectorEnv
from envs.common.errors import UnknownNameError

RENDER_MODES = ("ansi", "rgb_array", "human")
RENDER_FPS = 8


class SingleGame:
    """One game of `num_snakes` snakes, which takes moves on the board and makes pictures.

    The vector environment starts the next game at once when one ends, but here `state` shows the
    last board until `restart`. `options` are those of `BattlesnakeVectorEnv`, except `num_games`
    and `num_threads`. Raises what `BattlesnakeVectorEnv` raises, and `UnknownNameError` for a
    render mode that is neither in `RENDER_MODES` nor None."""

    def __init__(
        self,
        observation: Observation | str | dict[str, Any] | None,
        render_mode: str | None,
        **options: Any,
    ) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise UnknownNameError("render mode", str(render_mode), RENDER_MODES)
        self.render_mode = render_mode
        self.batch = BattlesnakeVectorEnv(
            num_games=1, observation=EgocentricPlanes(view="board"), **options
        )
        self.state: State = self.batch.state
        self.observation = choose_observation(observation, self.state.num_snakes)
        self._window: Any = None

    def restart(self, seed: int | None) -> None:
        """Begin the next game, or with a seed the first game of that seed."""
        self.batch.restart(seed)
        self.state = self.batch.state

    def advance(self, moves: np.ndarray) -> None:
        """Play one turn. `moves` is int8 (num_snakes,); those of dead snakes are ignored. The
        outcome is in `batch`.
        """
        before = self.batch.state.copy()
        self.batch.advance(moves)
        self.state = self.batch.state
        if (self.batch.terminated | self.batch.truncated).any():
            play_turn(before, moves[None, :], np.ones(1, np.bool_))
            self.state = before

    def observe(self, slots: Sequence[int]) -> np.ndarray:
        """Return what the snakes in `slots` see, (n, *shape of one observation)."""
        return self.observation.observe(self.state, *_pairs(slots))

    def action_mask(self, slots: Sequence[int]) -> np.ndarray:
        """Return bool (n, actions): False where an action is certain death."""
        return self.observation.action_mask(self.state, *_pairs(slots))

    def to_moves(self, slots: Sequence[int], actions: Sequence[int]) -> np.ndarray:
        """Translate the actions of the snakes in `slots` into moves on the board, int8 (n,)."""
        return self.observation.to_moves(self.state, *_pairs(slots), np.asarray(actions))

    def render(self, names: Sequence[str]) -> str | np.ndarray | None:
        """Return text or a picture, or show the picture in a window and return None, as the render
        mode says.

        Without a render mode it returns None.
        """
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
