"""PPO on the batched path learns as RLlib's own PPO does, over several seeds."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from ray.rllib.algorithms.ppo import PPOConfig as StockPPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.tune.registry import register_env
from scipy.stats import ttest_ind

from tests.train.experiments import toy
from tests.train.worlds import IdentityWorld
from train.modules import NetworkModule
from train.ppo import PPOConfig

# Two algorithms in one process share the name under which RLlib registers its environment.
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*Overriding environment")]

SEEDS, ITERATIONS, GAMES, STEPS = range(6), 14, 32, 16
SHARED = {"lr": 1e-2, "gamma": 0.95, "lambda_": 0.95, "num_epochs": 4, "clip_param": 0.2, "entropy_coeff": 0.01}


class IdentityEnv(gym.Env):
    """A row of the identity world for RLlib's own runner: one step an episode, 1 for naming the plane that is lit."""

    def __init__(self, _: dict[str, Any]) -> None:
        world = IdentityWorld(num_games=1)
        self.observation_space, self.action_space = world.single_observation_space, world.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.target = int(self.np_random.integers(0, self.action_space.n))
        return self._seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return self._seen(), float(action == self.target), True, False, {}

    def _seen(self) -> np.ndarray:
        seen = np.zeros(self.observation_space.shape, np.uint8)
        seen[0, 0, self.target] = 255
        return seen


def stock(seed: int) -> StockPPOConfig:
    config = StockPPOConfig().environment("identity-alone")
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=GAMES, rollout_fragment_length=STEPS)
    config.training(
        **SHARED,
        train_batch_size_per_learner=GAMES * STEPS,
        # It adds a masked step to each episode, which here is every other row: four minibatches an epoch, as ours.
        minibatch_size=2 * GAMES * STEPS // 4,
        # RLlib weighs the squared error, we half of it.
        vf_loss_coeff=0.25,
        vf_clip_param=float("inf"),
        use_kl_loss=False,
        grad_clip=0.5,
        grad_clip_by="global_norm",
    )
    model = {"name": "mlp", "options": {"hidden_sizes": [32]}, "bf16": False}
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=NetworkModule, model_config=model))
    return config.debugging(seed=seed, log_level="ERROR")


def batched(seed: int) -> PPOConfig:
    settings = {"num_steps": STEPS, "num_minibatches": 4, "ent_coef": 0.01, "gamma": 0.95, "learning_rate": 1e-2}
    config = PPOConfig.from_experiment(toy("identity", options={"num_games": GAMES}, bf16=False, **settings))
    return config.debugging(seed=seed)


def returns(config: Any) -> list[float]:
    """Mean return of each iteration."""
    algorithm = config.build_algo()
    try:
        return [float(algorithm.train()["env_runners"]["episode_return_mean"]) for _ in range(ITERATIONS)]
    finally:
        algorithm.stop()


def test_final_returns_and_learning_curves_are_the_same(one_ray):
    register_env("identity-alone", IdentityEnv)
    ours, theirs = (np.array([returns(config(seed)) for seed in SEEDS]) for config in (batched, stock))
    print(np.round([ours.mean(axis=0), theirs.mean(axis=0)], 3))
    # Both begin at chance and learn it, and the areas under their curves don't differ by more than seeds do.
    assert ours[:, 0].mean() == pytest.approx(0.25, abs=0.05)
    assert ours[:, -1].mean() == pytest.approx(theirs[:, -1].mean(), abs=0.03)
    assert ttest_ind(ours.mean(axis=1), theirs.mean(axis=1), equal_var=False).pvalue > 0.01
    assert ours.mean() == pytest.approx(theirs.mean(), abs=0.03)
