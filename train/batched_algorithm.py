"""What every algorithm on the batched path does: set up its RLlib configuration, count steps, log episodes."""

from __future__ import annotations

import time
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import COMPONENT_LEARNER, DEFAULT_AGENT_ID, DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_LEN_MEAN,
    EPISODE_RETURN_MEAN,
    LEARNER_RESULTS,
    NUM_AGENT_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
    WEIGHTS_SEQ_NO,
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
RESTORED_LEARNERS = "restored_learners"
"""Metrics key: how often the learners that have processes of their own had to be started anew."""
_SECONDS_BETWEEN_COPIES = 10.0


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
    config.learners(num_learners=experiment.num_learners, num_gpus_per_learner=experiment.num_gpus_per_learner)
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
    """`fraction_done` (0..1) is set by whoever knows the budget.

    A learner in a process of its own may die: all of them are then started anew with what they knew some seconds ago.
    """

    fraction_done: float = 0.0
    _learners_copy: dict[str, Any] | None = None
    _copied_at, _updates_since_copy, _restored_learners = 0.0, 0, 0

    def agent_steps(self) -> float:
        """Decisions taken so far, over all env runners."""
        key = (ENV_RUNNER_RESULTS, NUM_AGENT_STEPS_SAMPLED_LIFETIME, DEFAULT_AGENT_ID)
        return float(self.metrics.peek(key, default=0.0))

    def policy_weights(self) -> dict[str, Any]:
        """The state of the `train.modules.NetworkModule` that is trained."""
        state = self.learner_group.get_state(components="learner/rl_module")
        return next(iter(state["learner"]["rl_module"].values()))

    def restore_from_path(self, *args: Any, **kwargs: Any) -> None:
        super().restore_from_path(*args, **kwargs)
        self._learners_copy = None

    def _update_learners(self, **arguments: Any) -> list[dict[str, Any]]:
        """`LearnerGroup.update`, once more if a learner dies over it. RLlib neither restarts learners nor goes on without."""
        if not self.config.num_learners:
            return self.learner_group.update(**arguments)
        try:
            return self._copy_and_update(**arguments)
        except Exception:
            if self._learners_copy is None or not self._has_lost_a_learner():
                raise
        self._replace_learners()
        return self._copy_and_update(**arguments)

    def _copy_and_update(self, **arguments: Any) -> list[dict[str, Any]]:
        if self._learners_copy is None or time.monotonic() - self._copied_at > _SECONDS_BETWEEN_COPIES:
            self._learners_copy = self.learner_group.get_state()
            self._copied_at, self._updates_since_copy = time.monotonic(), 0
        self._updates_since_copy += 1
        results = self.learner_group.update(**arguments)
        self.metrics.log_value((LEARNER_RESULTS, DEFAULT_MODULE_ID, RESTORED_LEARNERS), self._restored_learners, window=1)
        return results

    def _has_lost_a_learner(self) -> bool:
        # Of several learners those that live on fail, too: they can't reach the one that is gone.
        try:
            ray.get([learner.__ray_ready__.remote() for learner in self.learner_group._workers])
        except RayActorError:
            return True
        return False

    def _replace_learners(self) -> None:
        group, config = self.learner_group, self.config
        for learner in group._workers:
            ray.kill(learner)
        group.shutdown()
        spec = config.get_multi_rl_module_spec(spaces=self.spaces, inference_only=False)
        self.learner_group = config.build_learner_group(rl_module_spec=spec)
        # Env runners only take weights with a higher number than theirs.
        self._learners_copy[COMPONENT_LEARNER][WEIGHTS_SEQ_NO] += self._updates_since_copy
        self.learner_group.set_state(self._learners_copy)
        self._restored_learners += 1

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
