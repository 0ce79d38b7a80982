"""Wrappers around a batch of games of any world: stacked frames, shaped rewards, repeated actions.

Each wrapper acts on whole batches and is a `BatchEnv` itself. `drain_episodes` stays the world's
own: whatever a wrapper changes for the trainer, returns are sums of the raw rewards, and lengths
are raw steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from envs.api import BatchEnv
from envs.common.errors import ConfigError, check_range

_MOST = 1 << 16
"""More frames, or repetitions of an action, than an episode has steps."""


class BatchWrapper(BatchEnv):
    """Hands everything on to `world`; its arrays are the world's own unless a subclass has
    others.
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
    Raises `ConfigError` for what is no number of at least two frames, and for observations that
    aren't pictures (H, W, C)."""

    def __init__(self, world: BatchEnv, num_frames: int, *, gap: bool = False) -> None:
        space = world.single_observation_space
        # One frame alone shows no motion.
        num_frames = check_range("the number of frames in a stack", num_frames, 2, _MOST)
        if not isinstance(space, Box) or len(space.shape) != 3:
            raise ConfigError(
                f"frames can be stacked where observations are pictures (H, W, C), not {space}"
            )
        self._ages: tuple[int, ...]
        if gap:
            self._ages = (num_frames - 1, 0)
        else:
            self._ages = tuple(range(num_frames - 1, -1, -1))
        n = len(self._ages)
        stacked = Box(np.tile(space.low, n), np.tile(space.high, n), dtype=space.low.dtype.type)
        super().__init__(world, observation_space=stacked)
        self._ring = np.zeros((num_frames, self.num_envs, *space.shape), space.dtype)
        self._newest = 0

    def restart(self, seed: int | None = None) -> None:
        self.world.restart(seed)
        self._ring[:] = self.world.observations
        self._take_over()
        self._stack(self.observations, slice(None))

    def advance(self, actions: np.ndarray) -> None:
        waiting = ~self.world.valid
        self.world.advance(actions)
        self._take_over()
        self._newest = (self._newest + 1) % len(self._ring)
        ended = np.flatnonzero(self.terminated | self.truncated)
        if len(ended):
            self._ring[self._newest, ended] = self.world.final_observations[ended]
            self._stack(self.final_observations, ended)
            self._ring[:, ended] = self.world.observations[ended]
        # The next episode of a row whose snake died in a running game begins later than with the
        # end of the last.
        begun = np.flatnonzero(waiting & self.valid)
        self._ring[:, begun] = self.world.observations[begun]
        self._ring[self._newest] = self.world.observations
        self._stack(self.observations, slice(None))

    def _take_over(self) -> None:
        own = self.observations, self.final_observations
        super()._take_over()
        self.observations, self.final_observations = own

    def _stack(self, out: np.ndarray, rows: slice | np.ndarray) -> None:
        stacked = _as_pixels(out, self._ring.shape[-1])
        for place, age in enumerate(self._ages):
            frame = self._ring[(self._newest - age) % len(self._ring)]
            stacked[rows, ..., place] = _as_pixels(frame, frame.shape[-1])[rows, ..., 0]


def _as_pixels(pictures: np.ndarray, channels: int) -> np.ndarray:
    """Return the same memory with `channels` numbers as one thing, void (…, C // channels).

    Such things are copied at once, in half the time."""
    return pictures.view(np.dtype((np.void, channels * pictures.itemsize)))


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

    If an episode ends before the action was repeated often enough, its row plays `idle` for the
    rest, and the new episode's rewards there are not paid. So does a row that is not valid, whose
    next episode may begin before the last repetition. Raises `ConfigError` unless `repeat` is an
    integer of at least 1."""

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
