"""Wrappers around a batch of games of any world: stacked frames, shaped rewards, repeated actions.

Each wrapper acts on whole batches and is a `BatchEnv` itself. `drain_episodes` stays the world's
own, so returns are always sums of raw rewards, and lengths are raw steps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from envs.api import BatchEnv
from envs.common.errors import ConfigError, check_range

_MOST = 1 << 16
"""More frames, or repetitions of an action, than an episode has steps."""
_SLIDES = 1024
"""Frames that a window slides on before its memory is moved back."""
_FEW_CHANNELS = 4
"""Up to so many channels are copied one by one. With more, copying whole pixels is faster."""


class BatchWrapper(BatchEnv):
    """Passes everything on to `world`; its arrays are the world's own unless a subclass replaces
    them.
    """

    def __init__(self, world: BatchEnv, *, observation_space: Box | None = None) -> None:
        self.world = world
        super().__init__(
            num_games=world.num_games,
            rows_per_game=world.rows_per_game,
            observation_space=observation_space or world.single_observation_space,
            action_space=world.single_action_space,
        )
        self.metadata = world.metadata
        self.render_mode = world.render_mode
        self.env_steps_per_advance = world.env_steps_per_advance
        self.evaluation = world.evaluation
        self.samples_actions = world.samples_actions
        if observation_space is None:
            self.observation_contract = world.observation_contract
            self.views = world.views

    def restart(self, seed: int | None = None) -> None:
        self.world.restart(seed)
        self._take_over()

    def advance(self, actions: np.ndarray) -> None:
        self.world.advance(actions)
        self._take_over()

    def _take_over(self) -> None:
        """Show the world's arrays. They may be other ones after a restart."""
        world = self.world
        self.env_steps_per_advance = world.env_steps_per_advance
        self.observations = world.observations
        self.final_observations = world.final_observations
        self.valid = world.valid
        self.action_mask = world.action_mask
        self.rewards = world.rewards
        self.terminated = world.terminated
        self.truncated = world.truncated

    def drain_episodes(self) -> dict[str, np.ndarray]:
        return self.world.drain_episodes()

    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        return self.world.final_info(ended)

    def picture(self, game: int = 0) -> np.ndarray:
        return self.world.picture(game)

    def render(self) -> Any:
        return self.world.render()

    def close_extras(self, **kwargs: Any) -> None:
        if hasattr(self, "world"):  # Gymnasium closes what a failed constructor left, too
            self.world.close(**kwargs)


def layers(world: BatchEnv) -> Iterator[BatchEnv]:
    """Return the world and all worlds that it is put around, from the outside in."""
    yield world
    if isinstance(world, BatchWrapper):
        yield from layers(world.world)


class FrameStack(BatchWrapper):
    """Stacks the last `num_frames` frames, oldest first, as observations (H, W, C · n); with `gap`
    only the oldest and newest.

    The gap is LARS's idea of the 2020 competition: two frames cost little and show motion over
    num_frames - 1 steps. At the beginning of an episode its first frame stands for those before it.
    Raises `ConfigError` unless `num_frames` is an integer of at least 2 and observations are
    pictures (H, W, C)."""

    def __init__(self, world: BatchEnv, num_frames: int, *, gap: bool = False) -> None:
        space = world.single_observation_space
        # One frame alone shows no motion.
        num_frames = check_range("the number of frames in a stack", num_frames, 2, _MOST)
        if not isinstance(space, Box) or len(space.shape) != 3:
            raise ConfigError(
                f"frames can be stacked where observations are pictures (H, W, C), not {space}"
            )
        n = 2 if gap else num_frames
        stacked = Box(np.tile(space.low, n), np.tile(space.high, n), dtype=space.low.dtype.type)
        super().__init__(world, observation_space=stacked)
        # A window takes in every `lag`-th frame, so the one that shows now is always the oldest.
        lag = num_frames - 1 if gap else 1
        self._windows = deque(
            _Window(self.observations.shape, n, self.observations.dtype) for _ in range(lag)
        )

    def restart(self, seed: int | None = None) -> None:
        self.world.restart(seed)
        self._take_over()
        self._begin_with_first_frames(slice(None))
        self.observations = self._windows[-1].stack

    def advance(self, actions: np.ndarray) -> None:
        waiting = ~self.world.valid
        self.world.advance(actions)
        self._take_over()
        self._windows.rotate(-1)
        window = self._windows[-1]
        window.slide()
        ended = np.flatnonzero(self.terminated | self.truncated)
        if len(ended):
            last = window.stack[ended]
            last[..., -window.channels :] = self.world.final_observations[ended]
            self.final_observations[ended] = last
        window.write(self.world.observations)
        # The next episode of a row whose snake died in a running game begins later than with the
        # end of the last.
        begun = self.terminated | self.truncated | (waiting & self.valid)
        self._begin_with_first_frames(np.flatnonzero(begun))
        self.observations = window.stack

    def _take_over(self) -> None:
        own = self.observations, self.final_observations
        super()._take_over()
        self.observations, self.final_observations = own

    def _begin_with_first_frames(self, rows: slice | np.ndarray) -> None:
        frames = self.world.observations[rows]
        for window in self._windows:
            window.stack[rows] = np.tile(frames, window.num_frames)


class _Window:
    """Stacked frames, `stack` (R, H, W, C · n), in which a new frame costs no copy of the others.

    A pixel's frames lie side by side in memory, oldest first. One frame further on, each pixel
    begins with its second frame and ends on the oldest of the pixel after it, which nobody needs
    any more. So the window slides on by a frame, and the new frame alone is written."""

    def __init__(self, shape: tuple[int, ...], num_frames: int, dtype: np.dtype[Any]) -> None:
        self.num_frames = num_frames
        self.channels = shape[-1] // num_frames
        self._shape = shape
        self._size = math.prod(shape)
        self._memory = np.zeros(self._size + _SLIDES * self.channels, dtype)
        self._begin = 0

    @property
    def stack(self) -> np.ndarray:
        """The frames, as a view that the next `slide` makes invalid."""
        return self._memory[self._begin : self._begin + self._size].reshape(self._shape)

    def slide(self) -> None:
        """Forget the oldest frame. The newest is undefined until `write`."""
        self._begin += self.channels
        if self._begin + self._size > len(self._memory):
            kept = self._memory[self._begin :]
            self._memory[: len(kept)] = kept
            self._begin = 0

    def write(self, frames: np.ndarray) -> None:
        """Write `frames` (R, H, W, C) as the newest."""
        newest = self.stack[..., -self.channels :]
        if self.channels > _FEW_CHANNELS:
            pixel = np.dtype((np.void, self.channels * frames.itemsize))
            newest, frames = newest.view(pixel), frames.view(pixel)
        for channel in range(newest.shape[-1]):
            newest[..., channel] = frames[..., channel]


class ShapedRewards(BatchWrapper):
    """Changes a reward r to sign(r) (√(|r| + 1) - 1) + 0.001 r: large ones weigh less (Pohlen et
    al. 2018, 1805.11593).
    """

    def _take_over(self) -> None:
        super()._take_over()
        self.rewards = shaped(self.world.rewards)


def shaped(rewards: np.ndarray) -> np.ndarray:
    """Return rewards shaped as by `ShapedRewards`, float32."""
    return (np.sign(rewards) * (np.sqrt(np.abs(rewards) + 1) - 1) + 0.001 * rewards).astype(
        np.float32
    )


class ActionRepeat(BatchWrapper):
    """Plays each action `repeat` times and pays the sum of the rewards.

    If an episode ends during the repetitions, its row plays `idle` for the rest, and the new
    episode's rewards there are dropped. The same holds for a row that is not valid, whose next
    episode may begin before the last repetition. Raises `ConfigError` unless `repeat` is an integer
    of at least 1."""

    def __init__(self, world: BatchEnv, repeat: int, *, idle: int) -> None:
        self.repeat = check_range("action_repeat", repeat, 1, _MOST)
        self.idle = idle
        super().__init__(world)
        self.env_steps_per_advance *= self.repeat
        self._own = self.rewards, self.terminated, self.truncated, self.final_observations
        self._told: dict[str, np.ndarray] = {}

    def _take_over(self) -> None:
        super()._take_over()
        self.env_steps_per_advance *= self.repeat
        self.rewards, self.terminated, self.truncated, self.final_observations = self._own

    def restart(self, seed: int | None = None) -> None:
        self._clear()
        super().restart(seed)

    def advance(self, actions: np.ndarray) -> None:
        world = self.world
        acting = self.world.valid.copy()
        actions = np.where(acting, self.checked_actions(actions), self.idle)
        self._clear()
        for _ in range(self.repeat):
            world.advance(actions)
            self.rewards += np.where(acting, world.rewards, 0)
            ended = acting & (world.terminated | world.truncated)
            self.terminated |= ended & world.terminated
            self.truncated |= ended & world.truncated
            self.final_observations[ended] = world.final_observations[ended]
            if ended.any():
                self._note_info(ended)
            acting &= ~ended
            actions[ended] = self.idle
        self._take_over()

    def _note_info(self, ended: np.ndarray) -> None:
        """Keep what the world tells of episodes that ended just now; it forgets them with the next
        step that ends some.
        """
        for name, column in self.world.final_info(
            self.world.terminated | self.world.truncated
        ).items():
            self._told.setdefault(name, np.zeros_like(column))[ended] = column[ended]

    def final_info(self, ended: np.ndarray) -> dict[str, np.ndarray]:
        return self._told

    def _clear(self) -> None:
        self._told = {}
        for array in self._own[:3]:
            array[:] = 0
