"""Asynchronous PPO: env runners don't wait for the learner, nor the learner for the slowest of
them.

Fragments are played with weights that are some updates old. V-trace corrects for that (IMPALA:
Espeholt et al. 2018, arXiv 1802.01561), and the clipped objective holds the policy near the one
with which an update begins (IMPACT: Luo et al. 2020, arXiv 1912.00167, where that is the target
network). Loss and learner are those of `train.ppo`, and `train.settings.APPOSettings`
lists the settings. Experience goes from env runner to learner as a reference, so this process
doesn't see it unless it learns."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    ENV_RUNNER_SAMPLING_TIMER,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)

from train.ppo import FRACTION_DONE, PPO, PPOConfig, PPOLearner
from train.rllib.batched_algorithm import AGENT_STEPS_BEFORE, LEARNER_SECONDS
from train.rllib.fragment_flow import PLAY, FragmentFlow, Played, by_learner
from train.rllib.modules import NetworkModule
from train.rllib.v_trace_connector import TrajectoriesToBatch
from train.rllib.weight_servers import WeightServers, WeightSource
from train.rollouts.trajectory import TrajectoryRunner
from train.settings import APPOSettings

_REQUESTS_IN_FLIGHT = 2
_SECONDS_AN_ITERATION = 1.0
_PATIENCE = 0.01


class APPORunner(TrajectoryRunner):
    """Plays each fragment with the newest weights that there are when it begins."""

    def play_ahead(self, *, parts: int, source: WeightSource) -> tuple[Played, Any]:
        """Play one fragment, and leave it in the object store in `parts`. Returns where it is, and
        the metrics.
        """
        self.take_newest_weights(source)
        return self.play_by_reference(parts=parts)


class APPOConfig(PPOConfig):
    """RLlib's configuration of a run of APPO."""

    settings: APPOSettings

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class or APPO)
        self.settings = APPOSettings()
        self.max_requests_in_flight_per_env_runner = _REQUESTS_IN_FLIGHT

    def validate(self) -> None:
        if not self._is_frozen and self.num_env_runners and self.min_time_s_per_iteration is None:
            self.reporting(min_time_s_per_iteration=_SECONDS_AN_ITERATION)
        super().validate()

    def batch_connector(self, observation_space: Any, action_space: Any) -> TrajectoriesToBatch:
        return TrajectoriesToBatch(observation_space, action_space, settings=self.settings)

    def runner_and_module(self) -> tuple[type[APPORunner], type[NetworkModule]]:
        return APPORunner, NetworkModule

    def get_default_learner_class(self) -> type[APPOLearner]:
        return APPOLearner


class APPOLearner(PPOLearner):
    """PPO's learner. Advantages come standardised, because only before they are weighted does their
    mean mean anything.
    """

    config: APPOConfig

    def build(self) -> None:
        super().build()
        self._loss_settings = dataclasses.replace(self.config.settings, norm_adv=False)


class APPO(PPO):
    """An RLlib `Algorithm`. With env runners an iteration takes about a second, without them it is
    one update.

    Fragments that were played and not yet learned from are not part of a checkpoint.
    """

    config: APPOConfig

    @classmethod
    def get_default_config(cls) -> APPOConfig:
        return APPOConfig()

    def setup(self, config: AlgorithmConfig) -> None:  # type: ignore[override]  # as in `BatchedAlgorithm`
        super().setup(config)
        settings = self.config.settings
        runners = self.config.num_env_runners
        self._fragments = settings.fragments_per_update(runners)
        self._flow = FragmentFlow(most=settings.max_lag * self._fragments)
        self._parts = max(1, self.config.num_learners)
        self._weights: WeightServers | None = None
        if runners:
            self._weights = WeightServers(self.config.custom_resources_per_learner)
        self._learning = ThreadPoolExecutor(max_workers=1) if runners else None

    def training_step(self) -> None:
        with self.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
            until = time.monotonic() + _SECONDS_AN_ITERATION
            while len(self._flow.waiting) < self._fragments:
                if time.monotonic() > until:
                    return
                self._serve()
        played = self._flow.take(self._fragments)
        began = time.perf_counter()
        with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            results = self._learn(played)
        self._log_learned(results)
        self.metrics.log_value(LEARNER_SECONDS, time.perf_counter() - began, reduce="sum")
        if self._weights:
            lag = self._weights.version - sum(fragment.version for fragment in played) / len(played)
            self.metrics.log_value(
                (LEARNER_RESULTS, DEFAULT_MODULE_ID, "lag"), max(0.0, lag), window=1
            )
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self._hand_out_weights()

    def _learn(self, played: list[Played]) -> list[dict[str, Any]]:
        """Learn from fragments, while this thread goes on with serving the env runners."""
        update = partial(
            self._update_learners,
            episodes_refs=by_learner(played),
            timesteps={
                NUM_ENV_STEPS_SAMPLED_LIFETIME: self.metrics.peek(
                    (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
                ),
                AGENT_STEPS_BEFORE: self.agent_steps(),
                FRACTION_DONE: self.fraction_done,
            },
            num_epochs=self.config.settings.num_epochs,
        )
        if self._learning is None:
            return update()
        learning = self._learning.submit(update)
        while not learning.done():
            self._serve()
            if not self.env_runner_group._worker_manager.num_outstanding_async_reqs(PLAY):
                # As much was played as the lag allows. To look for more all the time would take the
                # processor that learns.
                wait([learning], _PATIENCE)
        return learning.result()

    def _serve(self) -> None:
        """Ask env runners to play, and take in where the fragments are that they have played."""
        if self._weights is None:
            played = self._play_here("play_by_reference", parts=self._parts)
        else:
            arguments = {"parts": self._parts, "source": self._weights.source}
            self._flow.ask(self.env_runner_group._worker_manager, "play_ahead", arguments)
            answers = self._answers(
                lambda actors: actors.fetch_ready_async_reqs(tags=PLAY, timeout_seconds=_PATIENCE)
            )
            played = [answer for _, answer in answers]
        if played:
            self._flow.waiting.extend(fragment for fragment, _ in played)
            self._log_played([metrics for _, metrics in played])

    def _hand_out_weights(self) -> None:
        if self._weights is None:
            super()._hand_out_weights()
        else:
            self._weights.publish(self.learner_group)

    def load_policy_weights(self, weights: Any) -> None:
        super().load_policy_weights(weights)
        self._hand_out_weights()

    def restore_from_path(self, *args: Any, **kwargs: Any) -> None:
        super().restore_from_path(*args, **kwargs)
        self._hand_out_weights()

    def cleanup(self) -> None:
        if self._learning:
            self._learning.shutdown()
        if self._weights:
            self._weights.stop()
        super().cleanup()
