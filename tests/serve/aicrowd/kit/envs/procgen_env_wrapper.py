"""Stand-in of the starter kit's wrapper, by its contract.

`seed` is handed to the game, and gym3's games take no argument there; options go to gym.make, which
knows Procgen's only; the three of the score must be there, and are taken out; games that don't
exist are refused. gym3 ignores a reset within an episode."""

import gym
from procgen.env import ENV_NAMES
from ray.tune import registry


class ProcgenEnvWrapper(gym.Env):
    def __init__(self, config):
        self.config = {
            "num_levels": 0,
            "env_name": "coinrun",
            "start_level": 0,
            "paint_vel_info": False,
            "use_generated_assets": False,
            "center_agent": True,
            "use_sequential_levels": False,
            "distribution_mode": "easy",
        }
        self.config.update(config)
        self.env_name = self.config.pop("env_name")
        assert self.env_name in ENV_NAMES
        for name in ("return_min", "return_blind", "return_max"):
            self.config.pop(name)
        self.env = gym.make(f"procgen:procgen-{self.env_name}-v0", **self.config)
        self.metadata = self.env.metadata
        self.action_space = self.env.action_space
        self.observation_space = self.env.observation_space

    def reset(self):
        return self.env.reset()

    def step(self, action):
        return self.env.step(action)

    def render(self, mode="human"):
        return self.env.render(mode=mode)

    def close(self):
        return self.env.close()

    def seed(self, seed=None):
        return self.env.seed(seed)

    @property
    def spec(self):
        return self.env.spec


registry.register_env("procgen_env_wrapper", lambda config: ProcgenEnvWrapper(config))
