"""Wraps the competition's own environment as procsnake's training does, under the name
`procsnake_env`.

Its options stand in `env_config` beside Procgen's: action_repeat, frame_stack or gap_stack, augment
(names in
`utils/augment.py`), shape_rewards, and norm_reward (the discount of the returns by whose deviation
rewards are divided).
`info` has the raw `episode_return` and `episode_length`.
"""

from __future__ import annotations

from collections import deque

import gym
import numpy as np
from envs.procgen_env_wrapper import ProcgenEnvWrapper
from ray.tune import registry
from utils.augment import augment

OPTIONS = {
    "action_repeat": 1,
    "frame_stack": None,
    "gap_stack": None,
    "augment": (),
    "shape_rewards": False,
    "norm_reward": None,
}
LIMIT = 10.0


class ReturnStatistics:
    """The running variance of discounted returns (Welford)."""

    def __init__(self):
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, value):
        self.count += 1
        apart = value - self.mean
        self.mean += apart / self.count
        self.squares += apart * (value - self.mean)

    @property
    def deviation(self):
        variance = self.squares / self.count if self.count > 1 else 1.0
        return (variance + 1e-8) ** 0.5


class ProcsnakeEnv(gym.Env):
    """Observations uint8 (64, 64, 3 · frames that are kept), oldest first; 15 actions."""

    # All games of a process share their statistics, as all rows of a batch do in procsnake.
    statistics = ReturnStatistics()

    def __init__(self, config):
        own = {key: config.get(key, default) for key, default in OPTIONS.items()}
        self.env = ProcgenEnvWrapper(
            {key: value for key, value in config.items() if key not in OPTIONS}
        )
        self.repeat, self.shape, self.discount = (
            own["action_repeat"],
            own["shape_rewards"],
            own["norm_reward"],
        )
        kept = own["frame_stack"] or own["gap_stack"] or 1
        self.frames = deque(maxlen=kept)
        self.picks = (0, kept - 1) if own["gap_stack"] else tuple(range(kept))
        self.augmentations = own["augment"] or ()
        space = self.env.observation_space
        low, high = np.tile(space.low, len(self.picks)), np.tile(space.high, len(self.picks))
        self.observation_space = gym.spaces.Box(low, high, dtype=space.dtype)
        self.action_space, self.metadata = self.env.action_space, self.env.metadata
        self.episode_return, self.episode_length, self.discounted = 0.0, 0, 0.0
        self.running = False

    def reset(self):
        # Procgen ignores a reset within an episode, which goes on; so do its frames and its return.
        if self.running:
            return self.stacked()
        frame = self.env.reset()
        self.frames.extend([frame] * self.frames.maxlen)
        self.episode_return, self.episode_length, self.discounted = 0.0, 0, 0.0
        return self.stacked()

    def step(self, action):
        total, done = 0.0, False
        for _ in range(self.repeat):
            frame, reward, done, info = self.env.step(action)
            total += reward
            self.episode_length += 1
            if done:
                break
        self.running = not done
        self.frames.append(frame)
        self.episode_return += total
        info = dict(info, episode_return=self.episode_return, episode_length=self.episode_length)
        return self.stacked(), self.paid(total, done), done, info

    def stacked(self):
        picture = np.concatenate([self.frames[pick] for pick in self.picks], axis=-1)
        return np.ascontiguousarray(augment(picture, self.augmentations))

    def paid(self, reward, done):
        if self.shape:
            reward = float(np.sign(reward) * (np.sqrt(abs(reward) + 1) - 1) + 0.001 * reward)
        if self.discount is None:
            return reward
        self.discounted = self.discount * self.discounted + reward
        self.statistics.add(self.discounted)
        return float(np.clip(reward / self.statistics.deviation, -LIMIT, LIMIT))

    def render(self, mode="human"):
        return self.env.render(mode=mode)

    def seed(self, seed=None):
        # Ray seeds whatever has this method, but Procgen's games take no seed once they are made:
        # gym3's raise a TypeError.
        # Their own is the option rand_seed; the augmentations draw from numpy.random, which Ray
        # seeds itself.
        return []

    def close(self):
        self.env.close()


registry.register_env("procsnake_env", lambda config: ProcsnakeEnv(config))
