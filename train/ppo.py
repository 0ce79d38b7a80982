"""Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347): configuration, iteration and loss.

Experience comes from `train.batch_runner` with advantages done. Details follow CleanRL's ppo.py (Huang et al. 2022, "The 37
implementation details of PPO"); `train.config.PPOSettings` lists the settings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.ppo import PPO as RLlibPPO
from ray.rllib.algorithms.ppo import PPOConfig as RLlibPPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import ALL_MODULES
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.execution.rollout_ops import synchronous_parallel_sample
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    ENV_RUNNER_SAMPLING_TIMER,
    EPISODE_LEN_MEAN,
    EPISODE_RETURN_MEAN,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)

from train.allocator import keep_freed_memory
from train.batch_runner import ADVANTAGES, EPISODE_SUMS, VALUE_TARGETS, BatchEnvRunner
from train.config import Experiment, PPOSettings
from train.connector import fragments_to_batch
from train.modules import ACTION_MASK, NetworkModule, has_fast_bfloat16, mask_logits
from train.threads import ThreadTuner
from train.world import world_options

FRACTION_DONE = "fraction_done"
"""Key of the learner's `timesteps`: how much of the budget is used up, 0..1."""
LEARNER_SECONDS = "learner_seconds"
"""Metrics key: wall seconds of an iteration's update."""
EPISODE_MEANS = "episode_means"
"""Metrics key: means over the episodes that ended in an iteration, by column of `BatchEnv.drain_episodes`."""


class PPOConfig(RLlibPPOConfig):
    """RLlib's PPO configuration on the batched path; `from_experiment` fills it in.

    Beyond RLlib's fields, which keep their meaning: `num_minibatches`, `norm_adv`, `clip_vloss`, `target_kl`, `anneal_lr`,
    `num_threads` as in `PPOSettings`. RLlib's `minibatch_size`, `train_batch_size_per_learner`, `vf_clip_param` and KL
    penalty are not used.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class or PPO)
        self.num_minibatches = PPOSettings.num_minibatches
        self.norm_adv, self.clip_vloss = PPOSettings.norm_adv, PPOSettings.clip_vloss
        self.target_kl, self.anneal_lr = PPOSettings.target_kl, PPOSettings.anneal_lr
        self.num_threads = PPOSettings.num_threads
        self.minibatch_size, self.use_kl_loss = None, False

    @classmethod
    def from_experiment(cls, experiment: Experiment) -> PPOConfig:
        """The configuration of a run."""
        settings, network = experiment.ppo, experiment.network
        bf16 = has_fast_bfloat16() if settings.bf16 is None else settings.bf16
        config = cls()
        config.environment(experiment.env.name, env_config=world_options(experiment))
        config.env_runners(
            env_runner_cls=BatchEnvRunner,
            num_env_runners=experiment.num_env_runners,
            rollout_fragment_length=settings.num_steps,
            create_env_on_local_worker=False,
        )
        config.training(
            lr=settings.learning_rate,
            gamma=settings.gamma,
            lambda_=settings.gae_lambda,
            num_epochs=settings.num_epochs,
            clip_param=settings.clip_coef,
            vf_loss_coeff=settings.vf_coef,
            entropy_coeff=settings.ent_coef,
            grad_clip=settings.max_grad_norm,
            grad_clip_by="global_norm",
            learner_class=PPOLearner,
            learner_connector=fragments_to_batch,
            add_default_connectors_to_learner_pipeline=False,
        )
        config.rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=NetworkModule,
                model_config={"name": network.name, "options": dict(network.options), "bf16": bf16},
            )
        )
        config.debugging(seed=experiment.seed, log_level="ERROR")
        config.num_minibatches = settings.num_minibatches
        config.norm_adv, config.clip_vloss = settings.norm_adv, settings.clip_vloss
        config.target_kl, config.anneal_lr = settings.target_kl, settings.anneal_lr
        config.num_threads = settings.num_threads
        return config

    def validate_train_batch_size_vs_rollout_fragment_length(self) -> None:
        """Nothing to check: a batch is what one rollout brings, and how many rows were valid isn't known before."""


class PPO(RLlibPPO):
    """An RLlib `Algorithm`: each iteration plays one fragment on every env runner and learns from it.

    `fraction_done` (0..1) is set by whoever knows the budget; it drives `anneal_lr`.
    """

    fraction_done: float = 0.0

    @classmethod
    def get_default_config(cls) -> AlgorithmConfig:
        return PPOConfig()

    def training_step(self) -> None:
        with self.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
            fragments, results = synchronous_parallel_sample(
                worker_set=self.env_runner_group,
                sample_timeout_s=self.config.sample_timeout_s,
                _uses_new_env_runners=True,
                _return_metrics=True,
            )
        if not fragments:
            return
        self.metrics.aggregate(results, key=ENV_RUNNER_RESULTS)
        self._log_episode_means()
        env_steps = self.metrics.peek((ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME))
        began = time.perf_counter()
        with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            results = self.learner_group.update(
                episodes=fragments,
                timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: env_steps, FRACTION_DONE: self.fraction_done},
                num_epochs=self.config.num_epochs,
            )
        self.metrics.log_value(LEARNER_SECONDS, time.perf_counter() - began, window=1)
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self.env_runner_group.sync_weights(
                from_worker_or_learner_group=self.learner_group,
                policies=set(results[0]) - {ALL_MODULES},
                inference_only=False,
            )

    def _log_episode_means(self) -> None:
        """Sums and counts add up over env runners, so these are means over every episode and not means of means."""
        count = self.metrics.peek((ENV_RUNNER_RESULTS, NUM_EPISODES))
        if not count:
            return
        sums = self.metrics.peek((ENV_RUNNER_RESULTS, EPISODE_SUMS))
        for name, key in (("return", EPISODE_RETURN_MEAN), ("length", EPISODE_LEN_MEAN)):
            self.metrics.log_value((ENV_RUNNER_RESULTS, key), sums[name] / count, window=1)
        for name, total in sums.items():
            self.metrics.log_value((ENV_RUNNER_RESULTS, EPISODE_MEANS, name), total / count, window=1)


class PPOLearner(PPOTorchLearner):
    """Minibatch epochs over a fragment with the clipped objective."""

    def build(self) -> None:
        keep_freed_memory()
        self._threads = ThreadTuner(self.config.num_threads)
        super().build()

    def configure_optimizers_for_module(self, module_id: str, config: AlgorithmConfig | None = None) -> None:
        parameters = self.get_parameters(self.module[module_id])
        optimizer = torch.optim.Adam(parameters, lr=config.lr, eps=1e-5)
        self.register_optimizer(module_id=module_id, optimizer=optimizer, params=parameters, lr_or_lr_schedule=config.lr)

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        super().before_gradient_based_update(timesteps=timesteps)
        self._threads.before_update()
        self._generator = torch.Generator().manual_seed((self.config.seed or 0) + self._weights_seq_no)

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        super().after_gradient_based_update(timesteps=timesteps)
        if self.config.anneal_lr:
            for optimizer in self._named_optimizers.values():
                self._set_optimizer_lr(optimizer, lr=self.config.lr * (1 - timesteps[FRACTION_DONE]))

    def _create_iterator_if_necessary(self, *, training_data: Any, num_epochs: int = 1, **_: Any) -> Iterator[MultiAgentBatch]:
        """RLlib's hook for what an update goes through: here shuffled minibatches, anew in each epoch.

        There are always `num_minibatches` of them, so learners with unequal shares of the experience stay in step.
        """
        whole = self._make_batch_if_necessary(training_data=training_data)
        for _ in range(num_epochs):
            parts = {name: self._shuffled_parts(batch.count) for name, batch in whole.policy_batches.items()}
            for k in range(self.config.num_minibatches):
                yield MultiAgentBatch(
                    {
                        name: SampleBatch({column: batch[column][parts[name][k]] for column in batch})
                        for name, batch in whole.policy_batches.items()
                    },
                    env_steps=len(next(iter(parts.values()))[k]),
                )
            if self.config.target_kl is not None and self._mean_over_learners(self._approx_kl) > self.config.target_kl:
                return

    def _shuffled_parts(self, count: int) -> tuple[torch.Tensor, ...]:
        order = torch.randperm(count, generator=self._generator).to(self._device)
        return order.tensor_split(self.config.num_minibatches)

    def _mean_over_learners(self, value: torch.Tensor) -> float:
        if self.config.num_learners > 1:
            torch.distributed.all_reduce(value, torch.distributed.ReduceOp.AVG)
        return float(value)

    def compute_loss_for_module(
        self, *, module_id: str, config: PPOConfig, batch: dict[str, Any], fwd_out: dict[str, Any]
    ) -> torch.Tensor:
        loss, parts = ppo_loss(fwd_out[Columns.ACTION_DIST_INPUTS], fwd_out[Columns.VF_PREDS], batch, config)
        self._approx_kl = parts["approx_kl"]
        self.metrics.log_dict(parts, key=module_id, window=self.config.num_minibatches * self.config.num_epochs)
        return loss


def ppo_loss(
    logits: torch.Tensor, values: torch.Tensor, batch: dict[str, torch.Tensor], config: PPOConfig
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss to minimise and its parts, without gradients, for logging.

    `logits` [B, A] and `values` [B] are the network's answers now; `batch` holds what was done, expected and masked
    in the rollout.
    """
    log_probabilities = torch.log_softmax(mask_logits(logits, batch.get(ACTION_MASK)), -1)
    taken = log_probabilities.gather(1, batch[Columns.ACTIONS].long()[:, None]).squeeze(1)
    log_ratio = taken - batch[Columns.ACTION_LOGP]
    ratio = log_ratio.exp()

    advantages = batch[ADVANTAGES]
    if config.norm_adv:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    clipped_ratio = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
    policy_loss = torch.max(-advantages * ratio, -advantages * clipped_ratio).mean()

    targets, old_values = batch[VALUE_TARGETS], batch[Columns.VF_PREDS]
    squared_error = (values - targets).square()
    if config.clip_vloss:
        near = old_values + (values - old_values).clamp(-config.clip_param, config.clip_param)
        squared_error = torch.max(squared_error, (near - targets).square())
    value_loss = 0.5 * squared_error.mean()

    # A masked action has probability 0 and a large, finite logarithm: it adds 0.
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1).mean()
    loss = policy_loss + config.vf_loss_coeff * value_loss - config.entropy_coeff * entropy
    with torch.no_grad():
        parts = {
            "policy_loss": policy_loss.detach(),
            "value_loss": value_loss.detach(),
            "entropy": entropy.detach(),
            "approx_kl": ((ratio - 1) - log_ratio).mean(),
            "clipfrac": ((ratio - 1).abs() > config.clip_param).float().mean(),
            "explained_variance": 1 - (targets - old_values).var() / targets.var().clamp_min(1e-8),
        }
    return loss, parts
