"""Asynchronous PPO: env runners don't wait for the learner, nor the learner for the slowest of
them.

Fragments are played with weights that are some updates old. V-trace corrects for that (IMPALA:
Espeholt et al. 2018, arXiv 1802.01561), and the clipped objective holds the policy near the one
with which an update begins (IMPACT: Luo et al. 2020, arXiv 1912.00167, where that is the target
network).

1. **Collect**: `APPO.training_step` waits for enough fragments, and `APPORunner` plays on
   meanwhile. Experience goes from env runner to learner as a reference, so this process doesn't see
   it unless it learns.
2. **Advantages**: `TrajectoriesToBatch` computes them in the learner.
3. **Epochs, loss, step**: `train.ppo.PPOLearner`.

`train.settings.appo` and `train.settings.ppo` list the settings."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    ENV_RUNNER_SAMPLING_TIMER,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from train.ppo import FRACTION_DONE, PPO, PPOConfig, PPOLearner, PPORunner
from train.rllib.batched_algorithm import AGENT_STEPS_BEFORE, LEARNER_SECONDS
from train.rllib.connector import device_of, joined
from train.rllib.env_runner import Cut
from train.rllib.fragment_flow import PLAY, FragmentFlow, Played, by_learner
from train.rllib.modules import NetworkModule, mask_logits
from train.rllib.weight_servers import WeightServers, WeightSource
from train.rollouts.columns import ACTION_MASK, ADVANTAGES, VALUE_TARGETS
from train.rollouts.trajectory import Trajectory
from train.rollouts.v_trace import v_trace
from train.settings import APPOSettings

_REQUESTS_IN_FLIGHT = 2
_SECONDS_AN_ITERATION = 1.0
_PATIENCE = 0.01
RATIO_MEAN = "ratio_mean"
RATIO_CLIPPED = "ratio_clipped"
"""Metrics of a batch: the mean of π / μ over its decisions, and the share of decisions whose ratio
is above `rho_clip`.
"""


class APPOConfig(PPOConfig):
    """RLlib's configuration of a run of APPO."""

    settings: APPOSettings
    has_weight_servers = True

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


class APPO(PPO):
    """An RLlib `Algorithm`. With env runners an iteration takes about a second, without them it is
    one update.

    A checkpoint leaves out fragments that haven't been learned from yet.
    """

    config: APPOConfig

    @classmethod
    def get_default_config(cls) -> APPOConfig:
        return APPOConfig()

    def setup(self, config: AlgorithmConfig) -> None:  # type: ignore[override]
        super().setup(config)
        settings = self.config.settings
        runners = self.config.num_env_runners
        self._fragments = settings.fragments_per_update(runners)
        self._flow = FragmentFlow(most=settings.max_lag * self._fragments)
        self._parts = max(1, self.config.num_learners)
        self._weights: WeightServers | None = None
        if runners:
            self._weights = WeightServers(
                self.config.custom_resources_per_learner,
                self.config.env_runner_state_server_max_concurrency,
            )
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


class APPORunner(PPORunner):
    """Plays each fragment with the newest weights at its start, and leaves values and advantages to
    the learner. `sample` returns a `Trajectory`.
    """

    config: APPOConfig

    def play_ahead(self, *, parts: int, source: WeightSource) -> tuple[Played, Any]:
        """Play one fragment, and put it into the object store in `parts`. Returns its references
        and the metrics.
        """
        self.take_newest_weights(source)
        return self.play_by_reference(parts=parts)

    def own_columns(self, size: int) -> dict[str, np.ndarray]:
        own = super().own_columns(size)
        # The penalty is on the divergence from the policy that learns, which knows its own
        # probabilities.
        own.pop(Columns.ACTION_DIST_INPUTS, None)
        return own

    def collate(self, columns: dict[str, np.ndarray], cut: Cut, steps: int) -> Trajectory:
        for name in ("steps", "final_values", "vf_preds"):
            del columns[name]
        going_on = np.flatnonzero(self.env.valid)
        entries, observations = self._joined(cut)
        return Trajectory(
            columns,
            env_steps=self._env_steps,
            final_entries=entries,
            final_observations=observations,
            last_rows=going_on,
            last_observations=self.env.observations[going_on],
            num_rows=self.num_envs,
        )


class TrajectoriesToBatch(ConnectorV2):
    """Evaluates trajectories with the newest policy and values, by V-trace.

    The probabilities in the batch are the newest policy's, so PPO's ratios begin at 1 and its
    clipping holds the policy near the one with which the update began. Its distance from the policy
    that played is in the advantages."""

    def __init__(self, *args: Any, settings: APPOSettings, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings = settings

    def __call__(  # type: ignore[override]  # trajectories where RLlib has episodes
        self, *, rl_module: Any, episodes: list[Trajectory], metrics: MetricsLogger, **_: Any
    ) -> dict[str, dict[str, torch.Tensor]]:
        module = rl_module[DEFAULT_MODULE_ID].unwrapped()
        assert isinstance(module, NetworkModule)
        with torch.no_grad():
            batch, noted = self._judge(module, episodes)
        metrics.log_dict(noted, key=DEFAULT_MODULE_ID, window=1)
        return {DEFAULT_MODULE_ID: batch}

    def _judge(
        self, module: NetworkModule, own: list[Trajectory]
    ) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        device = device_of(module)
        names = [name for name in own[0].columns if name not in ("rows", "rewards", "ended")]
        columns = {name: joined([part.columns[name] for part in own]).to(device) for name in names}
        log_probabilities, values = self._answers(
            module, columns[Columns.OBS], columns.get(ACTION_MASK)
        )
        taken = log_probabilities.gather(1, columns[Columns.ACTIONS].long()[:, None]).squeeze(1)
        ratios = (taken - columns[Columns.ACTION_LOGP]).exp().cpu().numpy()
        targets, advantages = self._v_trace(module, own, values.cpu().numpy(), ratios)
        if self._settings.norm_adv:
            advantages = standardised(advantages, np.minimum(ratios, self._settings.rho_clip))
        columns |= {
            Columns.ACTION_LOGP: taken,
            Columns.VF_PREDS: values,
            VALUE_TARGETS: torch.from_numpy(targets).to(device),
            ADVANTAGES: torch.from_numpy(advantages).to(device),
        }
        if self._settings.kl_coef:
            columns[Columns.ACTION_DIST_INPUTS] = log_probabilities
        clipped = float((ratios > self._settings.rho_clip).mean())
        return columns, {RATIO_MEAN: float(ratios.mean()), RATIO_CLIPPED: clipped}

    def _answers(
        self, module: NetworkModule, observations: torch.Tensor, mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(Log-probabilities [n, A], values [n]) of the policy that learns, as many at a time as a
        minibatch has.
        """
        size = max(1, -(-len(observations) // self._settings.num_minibatches))
        answers = [module.rollout(part) for part in observations.split(size)]
        logits, values = (torch.cat(parts) for parts in zip(*answers, strict=True))
        return torch.log_softmax(mask_logits(logits, mask), -1), values

    def _v_trace(
        self, module: NetworkModule, own: list[Trajectory], values: np.ndarray, ratios: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        # Rows of different trajectories have nothing to do with each other.
        first_rows = np.cumsum([0] + [part.num_rows for part in own])
        first_entries = np.cumsum([0] + [len(part) for part in own])
        final_values = np.zeros(len(values), np.float32)
        last_values = np.zeros(first_rows[-1], np.float32)
        for part, row, entry in zip(own, first_rows, first_entries, strict=False):
            final_values[entry + part.final_entries] = self._values(module, part.final_observations)
            last_values[row + part.last_rows] = self._values(module, part.last_observations)
        settings = self._settings
        return v_trace(
            np.concatenate(
                [row + part.columns["rows"] for part, row in zip(own, first_rows, strict=False)]
            ),
            np.concatenate([part.columns["rewards"] for part in own]),
            values,
            np.concatenate([part.columns["ended"] for part in own]),
            final_values,
            last_values,
            ratios,
            settings.gamma,
            settings.gae_lambda,
            settings.rho_clip,
            settings.c_clip,
        )

    def _values(self, module: NetworkModule, observations: np.ndarray) -> np.ndarray:
        if not len(observations):
            return np.empty(0, np.float32)
        return module.rollout(joined([observations]).to(device_of(module)))[1].cpu().numpy()


class APPOLearner(PPOLearner):
    """PPO's learner. Advantages arrive standardised, because their mean is meaningful only before
    they are weighted.
    """

    config: APPOConfig

    def build(self) -> None:
        super().build()
        self._loss_settings = dataclasses.replace(self.config.settings, norm_adv=False)


def standardised(advantages: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return V-trace's advantages (n,), which contain the clipped ratios `weights` (n,), with mean
    0 and deviation 1.

    Mean and deviation are those of the unweighted advantages, and the weights stay. Otherwise
    actions that the policy would hardly take any more would get the negative mean as their
    advantage, and an unbounded ratio."""
    own = advantages / np.maximum(weights, 1e-8)
    mean = np.average(own, weights=weights)
    deviation = np.sqrt(np.average((own - mean) ** 2, weights=weights))
    standard: np.ndarray = (weights * (own - mean) / (deviation + 1e-8)).astype(np.float32)
    return standard
