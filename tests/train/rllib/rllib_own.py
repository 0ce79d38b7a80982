"""RLlib's own algorithms on its own path, to compare with: worlds row by row, and our networks in
its modules.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.dqn.torch.default_dqn_torch_rl_module import DefaultDQNTorchRLModule
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.schedules.scheduler import Scheduler

from agents import networks
from envs.api import BatchEnv
from train.rllib.modules import NetworkModule


class RowEnv(gym.Env):
    """The only row of a world, as an environment of its own."""

    def __init__(self, world: BatchEnv) -> None:
        assert world.num_envs == 1
        self.world = world
        self.observation_space = world.single_observation_space
        self.action_space = world.single_action_space
        self.seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self.seeded:
            self.world.restart(seed)
            self.seeded = True
        # Else the world has begun the next episode already.
        return self.world.observations[0].copy(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        world = self.world
        world.advance(np.array([action]))
        terminated = bool(world.terminated[0])
        truncated = bool(world.truncated[0])
        seen = world.final_observations[0] if terminated or truncated else world.observations[0]
        return seen.copy(), float(world.rewards[0]), terminated, truncated, {}


class Body(torch.nn.Module):
    """One of our networks up to its heads, as RLlib's DQN asks for an encoder."""

    def __init__(self, body: torch.nn.Module, bf16: bool) -> None:
        super().__init__()
        self.body = body
        self.bf16 = bf16

    def forward(self, batch: dict[str, Any]) -> dict[str, torch.Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            return {ENCODER_OUT: self.body(batch[Columns.OBS]).float()}


class OwnDQNModule(DefaultDQNTorchRLModule):
    """RLlib's DQN module around a dueling `q-network` of ours."""

    def setup(self) -> None:
        config = self.model_config
        self.uses_dueling = True
        self.uses_double_q = True
        self.num_atoms = 1
        self.epsilon_schedule = Scheduler(
            fixed_value_or_schedule=config["epsilon"], framework="torch"
        )
        body = {"body": config["name"], "body_options": config["options"]}
        built = networks.build(
            "q-network", self.observation_space.shape, int(self.action_space.n), **body
        )
        self.encoder = Body(built.body, config["bf16"])
        self.af = built.advantage
        self.vf = built.value
        # RLlib takes a Q value of exactly 0 for a forbidden action's, and all are 0 where nothing
        # is seen.
        torch.nn.init.constant_(self.vf.bias, 1e-3)


def own_ppo(
    env: str, *, rows: int, steps: int, minibatch_size: int, model: dict[str, Any], **training: Any
) -> PPOConfig:
    """RLlib's PPO in one process. `rows` environments; what isn't said is as in
    `train.config.PPOSettings`.
    """
    config = PPOConfig().environment(env)
    config.env_runners(
        num_env_runners=0, num_envs_per_env_runner=rows, rollout_fragment_length=steps
    )
    config.training(
        train_batch_size_per_learner=rows * steps,
        minibatch_size=minibatch_size,
        # RLlib weighs the squared error, we half of it.
        vf_loss_coeff=0.25,
        vf_clip_param=float("inf"),
        use_kl_loss=False,
        clip_param=0.2,
        entropy_coeff=0.01,
        grad_clip=0.5,
        grad_clip_by="global_norm",
        **training,
    )
    return config.rl_module(
        rl_module_spec=RLModuleSpec(module_class=NetworkModule, model_config=model)
    )


def own_dqn(
    env: str,
    *,
    rows: int,
    steps: int,
    settings: dict[str, Any],
    model: dict[str, Any],
    **env_runners: Any,
) -> DQNConfig:
    """RLlib's DQN (double, dueling, prioritised) in one process, with `settings` in the names of
    `train.config.DQNSettings`.

    An iteration plays `steps` steps of `rows` environments and makes a whole number of updates.
    """
    batch = settings["train_batch_size"]
    ratio = settings["replay_ratio"]
    config = DQNConfig().environment(env)
    config.env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=rows,
        rollout_fragment_length=steps,
        **env_runners,
    )
    config.training(
        lr=settings["learning_rate"],
        gamma=settings["gamma"],
        n_step=settings["n_step"],
        epsilon=settings["epsilon"],
        double_q=True,
        dueling=True,
        train_batch_size_per_learner=batch,
        training_intensity=ratio,
        # Ours counts updates, RLlib steps.
        target_network_update_freq=settings["target_update_freq"] * batch / ratio,
        num_steps_sampled_before_learning_starts=settings["learning_starts"],
        replay_buffer_config={
            "type": "PrioritizedEpisodeReplayBuffer",
            "capacity": settings["replay_capacity"],
            "alpha": 0.6,
            "beta": 0.4,
        },
        grad_clip=10.0,
        grad_clip_by="global_norm",
    )
    # Else an iteration is as many rollouts as bring a thousand steps.
    config.reporting(min_sample_timesteps_per_iteration=0)
    model = {**model, "epsilon": settings["epsilon"]}
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=OwnDQNModule, model_config=model))
    return config.debugging(log_level="ERROR")
