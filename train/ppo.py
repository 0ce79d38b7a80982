"""Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347): configuration, iteration
and loss.

Experience comes from `train.rllib.env_runner`, which has worked out the advantages. Details
follow CleanRL's ppo.py (Huang et al. 2022, "The 37 implementation details of PPO").
`train.settings.PPOSettings` lists the settings."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.ppo.ppo import (
    LEARNER_RESULTS_CURR_ENTROPY_COEFF_KEY,
    LEARNER_RESULTS_CURR_KL_COEFF_KEY,
    LEARNER_RESULTS_KL_KEY,
    LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY,
)
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.learner import (
    DEFAULT_OPTIMIZER,
    ENTROPY_KEY,
    POLICY_LOSS_KEY,
    VF_LOSS_KEY,
)
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    ENV_RUNNER_SAMPLING_TIMER,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)

from envs.common.cores import usable_cores
from envs.common.errors import ConfigError
from train.compute.allocator import keep_freed_memory
from train.compute.muon import Muon, split
from train.compute.threads import ThreadTuner
from train.metrics import work
from train.rllib.batched_algorithm import AGENT_STEPS_BEFORE, LEARNER_SECONDS, BatchedAlgorithm
from train.rllib.batched_config import BatchedConfig
from train.rllib.env_runner import ADVANTAGES, VALUE_TARGETS, BatchEnvRunner
from train.rllib.fragment_flow import by_learner
from train.rllib.learner import SparingLearner
from train.rllib.modules import ACTION_MASK, NetworkModule, mask_logits
from train.rollouts.recurrent import STRETCH, RecurrentModule, RecurrentRunner, shuffled_stretches
from train.settings import PPOSettings
from train.settings.schedule import value_at

FRACTION_DONE = "fraction_done"
"""Key of the learner's `timesteps`: the part of the budget that is used up, 0..1."""
IMPORTANCE = "importance"
"""Name of the column with how much likelier an action was by the weights of now than by those that
played it, float32 [B].
"""


class PPOConfig(BatchedConfig):
    """RLlib's configuration of a run of PPO."""

    settings: PPOSettings

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class or PPO)
        self.settings = PPOSettings()

    def runner_and_module(self) -> tuple[type[BatchEnvRunner], type[NetworkModule]]:
        if self.settings.lstm_units:
            return (RecurrentRunner, RecurrentModule)
        return (BatchEnvRunner, NetworkModule)

    def get_default_learner_class(self) -> type[TorchLearner]:
        return PPOLearner


def plays_while_learning(config: PPOConfig) -> bool:
    """Whether `concurrency` is asked for, and this process does both."""
    return config.settings.concurrency and not config.num_env_runners and not config.num_learners


def threads_to_learn(config: PPOConfig) -> int | None:
    """Return how many threads of torch learn; None if that is to be measured."""
    shared = max(1, usable_cores() // 2) if plays_while_learning(config) else None
    return config.settings.num_threads or shared


class PPO(BatchedAlgorithm):
    """An RLlib `Algorithm`. Each iteration plays one fragment on every env runner and learns from
    it.

    `fraction_done` drives `anneal_lr`. With `concurrency`, an iteration learns from the fragment
    that the iteration before played meanwhile. A fragment that was played ahead isn't part of a
    checkpoint."""

    config: PPOConfig
    _player: ThreadPoolExecutor | None = None
    _ahead: Future[tuple[dict[str, Any], list[Any]]] | None = None

    @classmethod
    def get_default_config(cls) -> PPOConfig:
        return PPOConfig()

    def setup(self, config: AlgorithmConfig) -> None:  # type: ignore[override]  # as in `BatchedAlgorithm`
        super().setup(config)
        if plays_while_learning(self.config):
            prepared = partial(
                _prepare_player, threads_to_learn(self.config) or 1, on_gpu=self.config.plays_on_gpu
            )
            self._player = ThreadPoolExecutor(1, "player", initializer=prepared)

    def training_step(self) -> None:
        steps_before = self.agent_steps()
        with self.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
            ahead = self._ahead
            self._ahead = None
            experience, metrics = ahead.result() if ahead else self._play()
        if not metrics:
            return
        self._log_played(metrics)
        env_steps = self.metrics.peek((ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME))
        with self._playing_ahead(), self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            began = time.perf_counter()
            results = self._update_learners(
                **experience,
                timesteps={
                    NUM_ENV_STEPS_SAMPLED_LIFETIME: env_steps,
                    AGENT_STEPS_BEFORE: steps_before,
                    FRACTION_DONE: self.fraction_done,
                },
                num_epochs=self.config.settings.num_epochs,
            )
            self.metrics.log_value(LEARNER_SECONDS, time.perf_counter() - began, window=1)
        self._log_learned(results)
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self._hand_out_weights()

    @contextmanager
    def _playing_ahead(self) -> Iterator[None]:
        """With `concurrency`: play the next fragment meanwhile, with the weights of now, and wait
        for it at the end.
        """
        if self._player is None:
            yield
            return
        self._ahead = self._player.submit(self._play_ahead)
        try:
            yield
        finally:
            wait([self._ahead])

    def _play_ahead(self) -> tuple[dict[str, Any], list[Any]]:
        if self.config.plays_on_gpu:
            # The weights were copied on that stream.
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        return self._play()

    def _play(self) -> tuple[dict[str, Any], list[Any]]:
        """(What all env runners have played, as the learners' `update` takes it, and the metrics.)

        Where others play and others learn, this process sees only where the fragments are.
        """
        learners = self.config.num_learners
        if learners and self.env_runner_group.num_remote_workers():
            told = self._play_on_all("play_by_reference", parts=learners)
            return {"episodes_refs": by_learner([played for played, _ in told])}, [
                metrics for _, metrics in told
            ]
        told = self._play_on_all()
        return {"episodes": [fragment for fragment, _ in told]}, [metrics for _, metrics in told]

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._ahead = None

    def cleanup(self) -> None:
        if self._player:
            self._player.shutdown()
        super().cleanup()

    def _hand_out_weights(self) -> None:
        """Send the learner's weights to all env runners."""
        self.env_runner_group.sync_weights(
            from_worker_or_learner_group=self.learner_group,
            policies=[DEFAULT_MODULE_ID],
            inference_only=False,
        )


def _prepare_player(num_threads: int, *, on_gpu: bool) -> None:
    """Set up the thread that plays while another one learns."""
    torch.set_num_threads(num_threads)
    if on_gpu:
        # Each step's short answer would wait in line behind a whole minibatch.
        torch.cuda.set_stream(torch.cuda.Stream(priority=-1))


_LEAST_KL_SHARE = 1 / 64
"""The least weight of the KL penalty, as a share of `kl_coef`: six quiet updates below it."""
_OF_THE_POLICY = (Columns.ACTION_LOGP, Columns.VF_PREDS, Columns.ACTION_DIST_INPUTS)
"""Columns of a rollout that depend on the policy that the ratios are taken to."""


class PPOLearner(SparingLearner):
    """Learns from fragments, in several epochs of minibatches, with the clipped objective."""

    config: PPOConfig

    def build(self) -> None:
        keep_freed_memory()
        self._threads = ThreadTuner(threads_to_learn(self.config))
        self._kl_coefs: dict[str, float] = {}
        self._last_kl: dict[str, torch.Tensor] = {}
        self._loss_settings = self.config.settings
        super().build()

    def configure_optimizers_for_module(
        self, module_id: str, config: AlgorithmConfig | None = None
    ) -> None:
        settings = self.config.settings
        parameters = self.get_parameters(self.module[module_id])
        lr = value_at(settings.learning_rate, 0)
        # No schedule of RLlib's: it would be applied after the update, which a resumed run forgets.
        if settings.optimizer == "muon":
            module = self.module[module_id].unwrapped()
            assert isinstance(module, NetworkModule)
            hidden, parameters = split(module)
            self.register_optimizer(module_id=module_id, optimizer=Muon(hidden, lr), params=hidden)
        name = DEFAULT_OPTIMIZER if settings.optimizer == "adam" else "adam"
        adam = torch.optim.Adam(parameters, lr=lr, eps=1e-5)
        self.register_optimizer(
            module_id=module_id, optimizer_name=name, optimizer=adam, params=parameters
        )

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        super().before_gradient_based_update(timesteps=timesteps)
        self._threads.before_update()
        self._generator = torch.Generator().manual_seed(
            (self.config.seed or 0) + self._weights_seq_no
        )
        steps = timesteps[AGENT_STEPS_BEFORE]
        settings = self.config.settings
        self._ent_coef = value_at(settings.ent_coef, steps)
        left = 1 - timesteps[FRACTION_DONE] if settings.anneal_lr else 1.0
        for optimizer in self._named_optimizers.values():
            self._set_optimizer_lr(optimizer, lr=value_at(settings.learning_rate, steps) * left)

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        super().after_gradient_based_update(timesteps=timesteps)
        for module_id, kl in self._last_kl.items():
            measured = self._mean_over_learners(kl)
            settings = self.config.settings
            before = self._kl_coef(module_id)
            least = settings.kl_coef * _LEAST_KL_SHARE
            self._kl_coefs[module_id] = adapted_kl_coef(
                before, measured, settings.kl_target, least=least
            )

    def _kl_coef(self, module_id: str) -> float:
        return self._kl_coefs.setdefault(module_id, self.config.settings.kl_coef)

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_state(*args, **kwargs), "kl_coefs": dict(self._kl_coefs)}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._kl_coefs = dict(state.get("kl_coefs", {}))

    def _create_iterator_if_necessary(
        self, *, training_data: Any, num_epochs: int = 1, **kwargs: Any
    ) -> Iterator[MultiAgentBatch]:
        """RLlib's hook for what an update goes through: here shuffled minibatches, anew in each
        epoch.

        There are always `num_minibatches` of them, so learners with unequal shares of the
        experience stay in step."""
        whole = self._make_batch_if_necessary(training_data=training_data)
        settings = self.config.settings
        self._num_minibatches = self._minibatches_of(
            sum(batch.count for batch in whole.policy_batches.values())
        )
        if plays_while_learning(self.config):
            for name, batch in whole.policy_batches.items():
                self._stay_near_the_newest_policy(name, batch)
        for epoch in range(num_epochs):
            parts = {
                name: self._shuffled_parts(batch) for name, batch in whole.policy_batches.items()
            }
            for k in work.told(
                f"epoch {epoch + 1} of {num_epochs}, minibatch", self._num_minibatches
            ):
                yield MultiAgentBatch(
                    {
                        # Rows are copied whole; indexing would go through observations number by
                        # number.
                        name: SampleBatch(
                            {
                                column: batch[column].index_select(0, parts[name][k])
                                for column in batch
                            }
                        )
                        for name, batch in whole.policy_batches.items()
                    },
                    env_steps=len(next(iter(parts.values()))[k]),
                )
            if (
                settings.target_kl is not None
                and self._mean_over_learners(self._approx_kl) > settings.target_kl
            ):
                return

    def _minibatches_of(self, count: int) -> int:
        """How many minibatches `count` decisions are split into: the same number for every
        learner.
        """
        if not self.config.minibatch_size:
            return self.config.settings.num_minibatches
        mean = self._mean_over_learners(torch.tensor(float(count), device=self._device))
        return max(1, round(mean / self.config.minibatch_size))

    @torch.no_grad()
    def _stay_near_the_newest_policy(self, module_id: str, batch: SampleBatch) -> None:
        """Put this update's first policy in the place of the one that played, which is one update
        older.

        This is the decoupled objective (Hilton et al. 2021, arXiv 2110.00641). With ratios to the
        policy that played, each update would undo the one before, and two policies would be learned
        by turns."""
        module = self.module[module_id].unwrapped()
        columns = {name: torch.as_tensor(batch[name]) for name in batch}
        anew = {name: torch.empty_like(columns[name]) for name in _OF_THE_POLICY if name in columns}
        for part in self._shuffled_parts(batch):
            seen = {name: column.index_select(0, part) for name, column in columns.items()}
            told = module.forward_train(seen)
            log_probabilities = torch.log_softmax(told[Columns.ACTION_DIST_INPUTS], -1)
            answers = {
                Columns.ACTION_LOGP: (
                    log_probabilities.gather(1, seen[Columns.ACTIONS].long()[:, None]).squeeze(1)
                ),
                Columns.VF_PREDS: told[Columns.VF_PREDS],
                Columns.ACTION_DIST_INPUTS: log_probabilities,
            }
            for name, column in anew.items():
                column[part] = answers[name]
        batch.update(anew)
        batch[IMPORTANCE] = (anew[Columns.ACTION_LOGP] - columns[Columns.ACTION_LOGP]).exp()

    def _shuffled_parts(self, batch: SampleBatch) -> Sequence[torch.Tensor]:
        num_minibatches = self._num_minibatches
        # Of a single decision there is no standard deviation.
        least = num_minibatches * (2 if self._loss_settings.norm_adv else 1)
        if batch.count < least:
            name = self.config.settings.algorithm
            raise ConfigError(
                f"{name}.num_minibatches is {num_minibatches}, which takes at least {least}"
                f" decisions, but a learner has only {batch.count} to learn from; set it lower, or"
                f" have more played: {name}.num_steps, env.options.num_games"
            )
        if STRETCH in batch:
            return shuffled_stretches(
                torch.as_tensor(batch[STRETCH]), num_minibatches, self._generator
            )
        if self.config.shuffle_batch_per_epoch:
            order = torch.randperm(batch.count, generator=self._generator).to(self._device)
        else:
            order = torch.arange(batch.count, device=self._device)
        return order.tensor_split(num_minibatches)

    def apply_gradients(self, gradients_dict: dict[Any, torch.Tensor]) -> None:
        """Make a step of the optimiser. RLlib would go through each gradient twice for numbers that
        aren't finite.
        """
        sums = torch.stack([gradient.sum() for gradient in gradients_dict.values()])
        if not sums.isfinite().all():
            super().apply_gradients(gradients_dict)
            return
        for reference, gradient in gradients_dict.items():
            self._params[reference].grad = gradient
        for optimizer in self._named_optimizers.values():
            optimizer.step()

    def _mean_over_learners(self, value: torch.Tensor) -> float:
        if self.config.num_learners > 1:
            torch.distributed.all_reduce(value, torch.distributed.ReduceOp.AVG)
        return float(value)

    def compute_loss_for_module(
        self,
        *,
        module_id: str,
        config: AlgorithmConfig,
        batch: dict[str, Any],
        fwd_out: dict[str, Any],
    ) -> torch.Tensor:
        settings = self.config.settings
        kl_coef = self._kl_coef(module_id)
        logits = fwd_out[Columns.ACTION_DIST_INPUTS]
        values = fwd_out[Columns.VF_PREDS]
        loss, parts = ppo_loss(
            logits, values, batch, self._loss_settings, ent_coef=self._ent_coef, kl_coef=kl_coef
        )
        self._approx_kl = parts["approx_kl"]
        parts[LEARNER_RESULTS_CURR_ENTROPY_COEFF_KEY] = self._ent_coef
        if settings.kl_coef:
            self._last_kl[module_id] = parts[LEARNER_RESULTS_KL_KEY]
            parts[LEARNER_RESULTS_CURR_KL_COEFF_KEY] = kl_coef
        self.metrics.log_dict(
            parts, key=module_id, window=settings.num_minibatches * settings.num_epochs
        )
        return loss


def ppo_loss(
    logits: torch.Tensor,
    values: torch.Tensor,
    batch: dict[str, torch.Tensor],
    settings: PPOSettings,
    *,
    ent_coef: float,
    kl_coef: float = 0.0,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return the loss to minimise, and its parts for logging, without gradients and by RLlib's
    names.

    `logits` [B, A] and `values` [B] are the network's current answers. `batch` holds what was done,
    expected and masked in the rollout, and for the KL penalty also the rollout's log-probabilities
    [B, A]. With the column `IMPORTANCE`, what was expected and the log-probabilities are those of a
    newer policy than the one that played (the decoupled objective)."""
    log_probabilities = torch.log_softmax(mask_logits(logits, batch.get(ACTION_MASK)), -1)
    taken = log_probabilities.gather(1, batch[Columns.ACTIONS].long()[:, None]).squeeze(1)
    log_ratio = taken - batch[Columns.ACTION_LOGP]
    ratio = log_ratio.exp()

    advantages = batch[ADVANTAGES]
    # Of several stretches of a memory, one may be a minibatch of a single decision.
    if settings.norm_adv and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    if IMPORTANCE in batch:
        advantages = advantages * batch[IMPORTANCE]
    clipped_ratio = ratio.clamp(1 - settings.clip_coef, 1 + settings.clip_coef)
    policy_loss = torch.max(-advantages * ratio, -advantages * clipped_ratio).mean()

    targets = batch[VALUE_TARGETS]
    old_values = batch[Columns.VF_PREDS]
    squared_error = (values - targets).square()
    if settings.clip_vloss:
        near = old_values + (values - old_values).clamp(-settings.clip_coef, settings.clip_coef)
        squared_error = torch.max(squared_error, (near - targets).square())
    value_loss = 0.5 * squared_error.mean()

    # A masked action has probability 0 and a large, finite logarithm: it adds 0.
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1).mean()
    loss = policy_loss + settings.vf_coef * value_loss - ent_coef * entropy
    with torch.no_grad():
        parts: dict[str, Any] = {
            POLICY_LOSS_KEY: policy_loss.detach(),
            VF_LOSS_KEY: value_loss.detach(),
            ENTROPY_KEY: entropy.detach(),
            "approx_kl": ((ratio - 1) - log_ratio).mean(),
            "clipfrac": ((ratio - 1).abs() > settings.clip_coef).float().mean(),
            LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY: (
                1 - _variance(targets - old_values) / _variance(targets).clamp_min(1e-8)
            ),
        }
    if settings.kl_coef:
        old = batch[Columns.ACTION_DIST_INPUTS]
        kl = (old.exp() * (old - log_probabilities)).sum(-1).mean()
        loss = loss + kl_coef * kl
        parts[LEARNER_RESULTS_KL_KEY] = kl.detach()
    return loss, parts


def _variance(values: torch.Tensor) -> torch.Tensor:
    """The mean squared deviation, which a single value has, too."""
    return values.var(correction=0)


def adapted_kl_coef(kl_coef: float, kl: float, target: float, *, least: float = 0.0) -> float:
    """Return the weight of the penalty for the next batch: doubled or halved if `kl` is off by a
    factor of 1.5 (section 4).

    It isn't halved below `least`, because after many quiet updates it would take as many to grow
    again."""
    if kl > 1.5 * target:
        return max(2 * kl_coef, least)
    if kl < target / 1.5:
        return max(kl_coef / 2, least)
    return kl_coef
