"""The competition's environment, by its contract: one game of Procgen under Ray's name `procgen_env_wrapper`.

The grader replaces this file by its own. Options that Procgen has are handed on; those of the score are not.
"""

from __future__ import annotations

import gym
import procgen  # noqa: F401  registers the games
from ray.tune import registry

DEFAULTS = {
    "env_name": "coinrun",
    "num_levels": 0,
    "start_level": 0,
    "paint_vel_info": False,
    "use_generated_assets": False,
    "center_agent": True,
    "use_sequential_levels": False,
    "distribution_mode": "easy",
}
FOR_THE_SCORE = ("return_min", "return_blind", "return_max")


class ProcgenEnvWrapper(gym.Env):
    """Observations uint8 (64, 64, 3), 15 actions."""

    def __init__(self, config):
        options = {key: value for key, value in dict(DEFAULTS, **config).items() if key not in FOR_THE_SCORE}
        self.env = gym.make("procgen:procgen-{}-v0".format(options.pop("env_name")), **options)
        self.action_space, self.observation_space = self.env.action_space, self.env.observation_space
        self.metadata = self.env.metadata

    def reset(self):
        return self.env.reset()

    def step(self, action):
        return self.env.step(action)

    def render(self, mode="human"):
        return self.env.render(mode=mode)

    def seed(self, seed=None):
        # Procgen's own seed is the option rand_seed.
        return [seed]

    def close(self):
        self.env.close()


registry.register_env("procgen_env_wrapper", lambda config: ProcgenEnvWrapper(config))
