"""What every algorithm on the batched path does: set up its RLlib configuration, count steps, log episodes."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_AGENT_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_LEN_MEAN,
    EPISODE_RETURN_MEAN,
    NUM_AGENT_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
)

from train.batch_runner import EPISODE_SUMS, BatchEnvRunner
from train.config import Experiment
from train.connector import fragments_to_batch
from train.modules import NetworkModule, has_fast_bfloat16
from train.world import world_options

AGENT_STEPS_BEFORE = "agent_steps_before"
"""Key of the learner's `timesteps`: decisions taken in all earlier iterations, which schedules go by."""
LEARNER_SECONDS = "learner_seconds"
"""Metrics key: wall seconds of an iteration's updates."""
EPISODE_MEANS = "episode_means"
"""Metrics key: means over the episodes that ended in an iteration, by column of `BatchEnv.drain_episodes`."""


def configure(
    config: AlgorithmConfig,
    experiment: Experiment,
    *,
    runner_class: type[BatchEnvRunner],
    module_class: type[NetworkModule],
    learner_class: type,
) -> None:
    """Fill in what an experiment says for any algorithm: world, network, env runners, learners, seed, batched path."""
    settings, network = experiment.settings, experiment.policy_network
    bf16 = has_fast_bfloat16() if settings.bf16 is None else settings.bf16
    config.environment(experiment.env.name, env_config=world_options(experiment))
    config.env_runners(
        env_runner_cls=runner_class,
        num_env_runners=experiment.num_env_runners,
        rollout_fragment_length=settings.num_steps,
        create_env_on_local_worker=False,
    )
    config.learners(num_learners=experiment.num_learners)
    config.training(
        gamma=settings.gamma,
        grad_clip=settings.max_grad_norm,
        grad_clip_by="global_norm",
        learner_class=learner_class,
        learner_connector=fragments_to_batch,
        add_default_connectors_to_learner_pipeline=False,
    )
    model_config = {"name": network.name, "options": dict(network.options), "bf16": bf16}
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=module_class, model_config=model_config))
    config.debugging(seed=experiment.seed, log_level="ERROR")


class BatchedAlgorithm(Algorithm):
    """`fraction_done` (0..1) is set by whoever knows the budget."""

    fraction_done: float = 0.0

    def agent_steps(self) -> float:
        """Decisions taken so far, over all env runners."""
        key = (ENV_RUNNER_RESULTS, NUM_AGENT_STEPS_SAMPLED_LIFETIME, DEFAULT_AGENT_ID)
        return float(self.metrics.peek(key, default=0.0))

    def _log_played(self, results: list[Any]) -> None:
        """Take in the env runners' metrics. Sums and counts add up over them, so these are means over every episode."""
        self.metrics.aggregate(results, key=ENV_RUNNER_RESULTS)
        count = self.metrics.peek((ENV_RUNNER_RESULTS, NUM_EPISODES))
        if not count:
            return
        sums = self.metrics.peek((ENV_RUNNER_RESULTS, EPISODE_SUMS))
        for name, key in (("return", EPISODE_RETURN_MEAN), ("length", EPISODE_LEN_MEAN)):
            self.metrics.log_value((ENV_RUNNER_RESULTS, key), sums[name] / count, window=1)
        for name, total in sums.items():
            self.metrics.log_value((ENV_RUNNER_RESULTS, EPISODE_MEANS, name), total / count, window=1)
