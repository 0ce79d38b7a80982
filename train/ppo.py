"""Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347), from top to bottom.

1. **Collect**: `PPO.training_step` has every env runner play some steps of all its games.
   `PPORunner.decide` draws the actions, `PPORunner.note_outcome` keeps the rewards.
2. **Advantages**: `PPORunner.collate` works them out at the end of a rollout.
3. **Epochs**: `PPOLearner.minibatches` goes through the rollout in shuffled minibatches.
4. **Loss**: `ppo_loss`.
5. **Step**: the learner's, with Adam or Muon. Then the env runners get the new weights.

RLlib starts the processes and calls these methods: `train.rllib.env_runner` has the loop over the
steps of a rollout, and `train.rllib.learner` the order of the calls within an update. Details
follow CleanRL's ppo.py (Huang et al. 2022, "The 37 implementation details of PPO").
`train.settings.ppo` lists the settings."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
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
from ray.rllib.policy.sample_batch import SampleBatch
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
from train.compute.data_parallel import DataParallel
from train.compute.in_advance import in_advance
from train.compute.muon import Muon, split
from train.compute.threads import ThreadTuner, available_threads
from train.compute.to_host import to_host
from train.metrics import work
from train.rllib.batched_algorithm import AGENT_STEPS_BEFORE, LEARNER_SECONDS, BatchedAlgorithm
from train.rllib.batched_config import BatchedConfig
from train.rllib.env_runner import BatchEnvRunner, Cut
from train.rllib.fragment_flow import by_learner
from train.rllib.learner import FragmentLearner
from train.rllib.modules import (
    ADVANTAGE_PREDS,
    NetworkModule,
    RecurrentModule,
    SeparateValueModule,
    mask_logits,
)
from train.rollouts.advantages import gae
from train.rollouts.columns import ACTION_MASK, ADVANTAGES, VALUE_TARGETS
from train.rollouts.fragment import Fragment
from train.rollouts.recurrent import STATE, STRETCH, RowMemory, shuffled_stretches
from train.rollouts.reward_scaling import RewardScaler
from train.settings import PPOSettings
from train.settings.schedule import value_at
from train.worlds.symmetry import RandomViews

FRACTION_DONE = "fraction_done"
"""Key of the learner's `timesteps`: the part of the budget that is used up, 0..1."""
ADVANTAGE_LOSS_KEY = "adv_loss"
"""Metric with the mean squared error of predicted advantages."""
IMPORTANCE = "importance"
"""Name of the column with how much likelier an action was by the weights of now than by those that
played it, float32 [B].
"""
REWARD_SCALER = "reward_scaler"
"""Key of the scale of rewards in a runner's progress."""


class PPOConfig(BatchedConfig):
    """RLlib's configuration of a run of PPO."""

    settings: PPOSettings

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class or PPO)
        self.settings = PPOSettings()

    def runner_and_module(self) -> tuple[type[PPORunner], type[NetworkModule]]:
        if self.settings.value_epochs:
            return PPORunner, SeparateValueModule
        module = RecurrentModule if self.settings.lstm_units else NetworkModule
        return PPORunner, module

    def _complete(self) -> None:
        super()._complete()
        if self.settings.value_epochs and self.num_learners > 1:
            raise ConfigError(
                f"num_learners is {self.num_learners}, but with {self.settings.algorithm}."
                "value_epochs policy and values learn by turns, which only one learner can; set"
                " num_learners to 0 or 1"
            )

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
    that was played during the previous one. A checkpoint leaves out a fragment that was played
    ahead."""

    config: PPOConfig
    _player: ThreadPoolExecutor | None = None
    _ahead: Future[tuple[dict[str, Any], list[Any]]] | None = None

    @classmethod
    def get_default_config(cls) -> PPOConfig:
        return PPOConfig()

    def setup(self, config: AlgorithmConfig) -> None:  # type: ignore[override]
        super().setup(config)
        if plays_while_learning(self.config):
            prepared = partial(
                _prepare_player, threads_to_learn(self.config) or 1, self._local_runner().device
            )
            self._player = ThreadPoolExecutor(1, "player", initializer=prepared)

    def training_step(self) -> None:
        """Play, learn and distribute the weights. `Algorithm.train` calls it once per iteration."""
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
            )
            self.metrics.log_value(LEARNER_SECONDS, time.perf_counter() - began, window=1)
        self._log_learned(results)
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self._hand_out_weights()

    def _play(self) -> tuple[dict[str, Any], list[Any]]:
        """Return what all env runners have played, as the learners' `update` takes it, and the
        metrics.

        Where others play and others learn, this process sees only where the fragments are.
        """
        learners = self.config.num_learners
        if learners and self.env_runner_group.num_remote_workers():
            answers = self._play_on_all("play_by_reference", parts=learners)
            experience = {"episodes_refs": by_learner([fragment for fragment, _ in answers])}
        else:
            answers = self._play_on_all()
            experience = {"episodes": [fragment for fragment, _ in answers]}
        return experience, [metrics for _, metrics in answers]

    def _hand_out_weights(self) -> None:
        """Send the learner's weights to all env runners."""
        self.env_runner_group.sync_weights(
            from_worker_or_learner_group=self.learner_group,
            policies=[DEFAULT_MODULE_ID],
            inference_only=False,
        )

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
        device = self._local_runner().device
        if device.type == "cuda":
            # The weights were copied on that stream.
            torch.cuda.current_stream(device).wait_stream(torch.cuda.default_stream(device))
        return self._play()

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._ahead = None

    def cleanup(self) -> None:
        if self._player:
            self._player.shutdown()
        super().cleanup()


def _prepare_player(num_threads: int, device: torch.device) -> None:
    """Set up the thread that plays on `device` while another one learns."""
    torch.set_num_threads(num_threads)
    if device.type == "cuda":
        # Each step's short answer would wait in line behind a whole minibatch.
        torch.cuda.set_stream(torch.cuda.Stream(device, priority=-1))


class PPORunner(BatchEnvRunner):
    """Plays by drawing from the policy. `sample` returns a `Fragment` with advantages.

    With `lstm_units` it remembers a state for each row (`RowMemory`)."""

    config: PPOConfig

    _scaler: RewardScaler | None = None
    _memory: RowMemory | None = None

    def make_env(self) -> None:
        super().make_env()
        settings = self.config.settings
        self._last_buffer: dict[str, np.ndarray] = {}
        if settings.norm_reward:
            self._scaler = RewardScaler(self.num_envs, settings.gamma)
        if settings.lstm_units:
            self._memory = RowMemory(
                self.num_envs, settings.lstm_units, worker=self.worker_index or 0
            )

    def own_columns(self, size: int) -> dict[str, np.ndarray]:
        columns = {
            Columns.ACTION_LOGP: np.empty(size, np.float32),
            Columns.VF_PREDS: np.empty(size, np.float32),
            "ended": np.empty(size, np.bool_),
            "final_values": np.empty(size, np.float32),
        }
        if self.config.settings.kl_coef:
            columns[Columns.ACTION_DIST_INPUTS] = np.empty(
                (size, int(self.env.single_action_space.n)), np.float32
            )
        if self._memory is not None:
            columns |= self._memory.columns(size)
        return columns

    def decide(self, entry: dict[str, np.ndarray], explore: bool, random_actions: bool) -> None:
        """Draw the actions from the policy, and keep how likely they were, and the values."""
        logits, values = self._answer(entry)
        if random_actions:
            logits = torch.zeros_like(logits)
        mask = self._mask_of(entry)
        log_probabilities = torch.log_softmax(mask_logits(logits, mask), -1)
        if explore or random_actions:
            # An exponential race: argmax of p / Exp(1) is distributed as p, and cheaper than
            # torch.multinomial.
            race = torch.empty_like(log_probabilities).exponential_(generator=self._generator)
            actions = (log_probabilities - race.log()).argmax(-1)
        else:
            actions = log_probabilities.argmax(-1)
        decided = {
            Columns.ACTIONS: actions,
            Columns.ACTION_LOGP: log_probabilities.gather(1, actions[:, None]).squeeze(1),
            Columns.VF_PREDS: values,
        }
        if Columns.ACTION_DIST_INPUTS in entry:
            decided[Columns.ACTION_DIST_INPUTS] = log_probabilities
        for name, column in to_host(decided).items():
            entry[name][:] = column

    def _answer(self, entry: dict[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits [n, A] and values [n] of the rows that are to act."""
        observations = torch.from_numpy(entry[Columns.OBS]).to(self._device)
        if self._memory is None:
            return self.module.rollout(observations)
        self._memory.write_to(entry)
        assert isinstance(self.module, RecurrentModule)
        state = torch.from_numpy(entry[STATE]).to(self._device)
        logits, values, state_after = self.module.recall(observations, state)
        self._memory.states[entry["rows"]] = state_after.cpu().numpy()
        return logits, values

    def note_outcome(
        self, entry: dict[str, np.ndarray], rows: np.ndarray, start: int, cut: Cut
    ) -> None:
        entry["ended"][:] = (self.env.terminated | self.env.truncated)[rows]
        rewards = self.env.rewards[rows]
        if self._scaler:
            rewards = self._scaler.scale(rewards, rows, entry["ended"])
        entry["rewards"][:] = rewards
        entry["final_values"][:] = 0.0
        if self._memory is None:
            self._note_cut(rows, start, cut)
            return
        # At once, before the state that belongs to the last observations is forgotten.
        truncated: Cut = []
        self._note_cut(rows, 0, truncated)
        for entries, observations in truncated:
            entry["final_values"][entries] = self._values(observations, rows[entries])
        self._memory.forget(rows[entry["ended"]])

    def collate(self, columns: dict[str, np.ndarray], cut: Cut, steps: int) -> Fragment:
        """Compute the advantages of a rollout's decisions, and the targets of their values."""
        for entries, observations in cut:
            columns["final_values"][entries] = self._values(observations, columns["rows"][entries])
        last_values = self._last_values()
        del columns["steps"]
        values = columns[Columns.VF_PREDS]
        settings = self.config.settings
        columns[ADVANTAGES] = gae(
            columns.pop("rows"),
            columns.pop("rewards"),
            values,
            columns.pop("ended"),
            columns.pop("final_values"),
            last_values,
            settings.gamma,
            settings.gae_lambda,
        )
        columns[VALUE_TARGETS] = columns[ADVANTAGES] + values
        return Fragment(columns, env_steps=self._env_steps)

    def _last_values(self) -> np.ndarray:
        """Return the values of what the rows see now, float32 (rows,); 0 for those that wait."""
        values = np.zeros(self.num_envs, np.float32)
        going_on = np.flatnonzero(self.env.valid)
        values[going_on] = self._values(self.env.observations[going_on], going_on)
        return values

    def _rate(self, observations: np.ndarray, rows: np.ndarray) -> torch.Tensor:
        if self._memory is None:
            return super()._rate(observations, rows)
        assert isinstance(self.module, RecurrentModule)
        state = torch.from_numpy(self._memory.states[rows]).to(self._device)
        return self.module.recall(torch.from_numpy(observations).to(self._device), state)[1]

    def _play(self, steps: int, explore: bool, random_actions: bool) -> Fragment:
        if self._memory is not None:
            self._memory.begin_rollout()
        return super()._play(steps, explore, random_actions)

    def _allocate(self, steps: int) -> dict[str, np.ndarray]:
        if self.config.settings.concurrency:
            # The last rollout is being learned from.
            self._buffer, self._last_buffer = self._last_buffer, self._buffer
        return super()._allocate(steps)

    def _forget_games(self) -> None:
        super()._forget_games()
        if self._memory is not None:
            self._memory.forget()

    def _draw_seeds(self) -> None:
        super()._draw_seeds()
        if self.config.settings.symmetries:
            self._views = RandomViews(self.env, self._env_seed)

    def progress(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of this runner, with the scale of its rewards."""
        scale = self._scaler.get_state() if self._scaler else None
        return {**super().progress(), REWARD_SCALER: scale}

    def carry_on(self, progress: dict[str, Any]) -> None:
        super().carry_on(progress)
        if self._scaler and progress[REWARD_SCALER]:
            self._scaler.set_state(progress[REWARD_SCALER])


_LEAST_KL_SHARE = 1 / 64
"""The least weight of the KL penalty, as a share of `kl_coef`: six quiet updates below it."""
_OF_THE_VALUES = (Columns.OBS, VALUE_TARGETS, Columns.VF_PREDS)
"""Columns of a rollout from which values of their own network are learned."""
_OF_THE_POLICY = (Columns.ACTION_LOGP, Columns.VF_PREDS, Columns.ACTION_DIST_INPUTS)
"""Columns of a rollout that depend on the policy that the ratios are taken to."""


class PPOLearner(FragmentLearner):
    """Learns from fragments, in several epochs of minibatches, with the clipped objective."""

    config: PPOConfig

    def build(self) -> None:
        self._kl_coef = self.config.settings.kl_coef
        self._last_kl: torch.Tensor | None = None
        self._loss_settings = self.config.settings
        super().build()
        if plays_while_learning(self.config):
            self._newest = copy.deepcopy(self.network_module)
            self._divide_passes()

    def _divide_passes(self) -> None:
        """Divide each minibatch among threads, where that gives the same gradients.

        Two cores are enough for two threads, because playing takes less time than learning. Of many
        threads the gradients would take long to add up."""
        module = self.network_module
        has_weights_alone = module.state_dict().keys() == dict(module.named_parameters()).keys()
        is_plain = type(module) is NetworkModule and has_weights_alone
        if not is_plain or self.config.num_gpus_per_learner or self._torch_compile_forward_train:
            return
        available = available_threads()
        num_threads = self.config.settings.num_threads or min(available, max(2, available // 2), 4)
        if num_threads > 1:
            module.parallel = DataParallel(module, num_threads, NetworkModule.rollout)
            self._threads = ThreadTuner(1)

    def threads_to_learn(self) -> int | None:
        return threads_to_learn(self.config)

    def configure_optimizers_for_module(
        self, module_id: str, config: AlgorithmConfig | None = None
    ) -> None:
        """Make Adam, or Muon and Adam. `Learner.build` calls it."""
        settings = self.config.settings
        parameters = self.get_parameters(self.module[module_id])
        lr = value_at(settings.learning_rate, 0)
        # No schedule of RLlib's: it would be applied after the update, which a resumed run forgets.
        if settings.optimizer == "muon":
            hidden, parameters = split(self.network_module)
            self.register_optimizer(module_id=module_id, optimizer=Muon(hidden, lr), params=hidden)
        name = DEFAULT_OPTIMIZER if settings.optimizer == "adam" else "adam"
        adam = torch.optim.Adam(parameters, lr=lr, eps=1e-5, fused=True)
        self.register_optimizer(
            module_id=module_id, optimizer_name=name, optimizer=adam, params=parameters
        )

    def before_update(self, timesteps: dict[str, Any]) -> None:
        """Set the learning rate and the weight of the entropy bonus, by the decisions so far."""
        self._threads.before_update()
        seed = (self.config.seed or 0) + self._weights_seq_no
        self._generator = torch.Generator().manual_seed(seed)
        steps = timesteps[AGENT_STEPS_BEFORE]
        settings = self.config.settings
        self.ent_coef = value_at(settings.ent_coef, steps)
        budget_left = 1 - timesteps[FRACTION_DONE] if settings.anneal_lr else 1.0
        lr = value_at(settings.learning_rate, steps) * budget_left
        self.set_lr(lr)

    def minibatches(self, batch: SampleBatch) -> Iterator[SampleBatch]:
        """Yield minibatches, shuffled again in each epoch. With `value_epochs`, those of the policy
        come first, and then those of the values.

        There are always `num_minibatches` of them, so learners with unequal shares of the
        experience stay in step."""
        settings = self.config.settings
        self._num_minibatches = self._minibatches_of(batch.count)
        self.metrics_window = settings.num_minibatches * settings.num_epochs
        rows_of: Callable[[torch.Tensor], SampleBatch] = partial(rows_at, batch)
        if plays_while_learning(self.config):
            rows_of = self._near_the_newest_policy(batch)
        for epoch in range(settings.num_epochs):
            task = f"epoch {epoch + 1} of {settings.num_epochs}"
            yield from self._one_epoch(batch, task, rows_of)
            rows_of = partial(rows_at, batch)
            if self._has_gone_too_far():
                break
        if settings.value_epochs and self._weights_seq_no % settings.value_freq == 0:
            seen = SampleBatch({name: batch[name] for name in _OF_THE_VALUES})
            for epoch in range(settings.value_epochs):
                epochs = f"values, epoch {epoch + 1} of {settings.value_epochs}"
                yield from self._one_epoch(seen, epochs, partial(rows_at, seen))

    def _one_epoch(
        self, batch: SampleBatch, task: str, rows_of: Callable[[torch.Tensor], SampleBatch]
    ) -> Iterator[SampleBatch]:
        """Yield minibatches that `rows_of` makes of positions of decisions."""
        parts = self._shuffled_parts(batch)
        minibatches: Iterator[SampleBatch] = map(rows_of, parts)
        if plays_while_learning(self.config) and parts[0].device.type == "cpu":
            # The thread that plays is through before this one, so a core is free for it.
            minibatches = in_advance(rows_of, parts)
        counted = work.counted(f"{task}, minibatch", self._num_minibatches)
        for _, minibatch in zip(counted, minibatches, strict=True):
            # RLlib computes `loss`, its gradients and the step before it asks for the next one.
            yield minibatch

    def loss(
        self, answers: dict[str, torch.Tensor], batch: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        if Columns.ACTIONS not in batch:
            loss = value_loss(answers[Columns.VF_PREDS], batch, self._loss_settings)
            return loss, {VF_LOSS_KEY: loss.detach()}
        loss, parts = ppo_loss(
            answers[Columns.ACTION_DIST_INPUTS],
            answers.get(Columns.VF_PREDS),
            batch,
            self._loss_settings,
            ent_coef=self.ent_coef,
            kl_coef=self._kl_coef,
            predicted_advantages=answers.get(ADVANTAGE_PREDS),
        )
        self._approx_kl = parts["approx_kl"]
        parts[LEARNER_RESULTS_CURR_ENTROPY_COEFF_KEY] = self.ent_coef
        if self.config.settings.kl_coef:
            self._last_kl = parts[LEARNER_RESULTS_KL_KEY]
            parts[LEARNER_RESULTS_CURR_KL_COEFF_KEY] = self._kl_coef
        return loss, parts

    def after_update(self) -> None:
        """Adapt the weight of the KL penalty, if there is one."""
        if self._last_kl is None:
            return
        settings = self.config.settings
        self._kl_coef = adapted_kl_coef(
            self._kl_coef,
            self._mean_over_learners(self._last_kl),
            settings.kl_target,
            least=settings.kl_coef * _LEAST_KL_SHARE,
        )

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_state(*args, **kwargs), "kl_coef": self._kl_coef}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._kl_coef = state.get("kl_coef", self._kl_coef)

    def _minibatches_of(self, count: int) -> int:
        """Return how many minibatches `count` decisions are split into: the same number for every
        learner.
        """
        if not self.config.minibatch_size:
            return self.config.settings.num_minibatches
        mean = self._mean_over_learners(torch.tensor(float(count), device=self._device))
        return max(1, round(mean / self.config.minibatch_size))

    def _shuffled_parts(self, batch: SampleBatch) -> Sequence[torch.Tensor]:
        """Return the positions of each minibatch's decisions."""
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

    def _has_gone_too_far(self) -> bool:
        """Whether the policy is further than `target_kl` from the one that played."""
        target = self.config.settings.target_kl
        return target is not None and self._mean_over_learners(self._approx_kl) > target

    def _near_the_newest_policy(self, batch: SampleBatch) -> Callable[[torch.Tensor], SampleBatch]:
        """Return what makes the first epoch's minibatches. It also asks this update's first policy
        for log-probabilities and values, and writes them over those of the policy that played,
        which is one update older, in the minibatch and in `batch`.

        This is the decoupled objective (Hilton et al. 2021, arXiv 2110.00641). With ratios to the
        policy that played, each update would undo the one before, and two policies would be learned
        by turns."""
        played: Any = SampleBatch({name: torch.as_tensor(batch[name]) for name in batch})
        for name in _OF_THE_POLICY:
            if name in played:
                batch[name] = torch.empty_like(played[name])
        batch[IMPORTANCE] = torch.empty_like(played[Columns.ACTION_LOGP])
        newest = self._newest
        newest.load_state_dict(self.network_module.state_dict())

        @torch.no_grad()
        def rows_of(part: torch.Tensor) -> SampleBatch:
            rows: Any = rows_at(played, part)
            answers = newest.forward_train(rows)
            log_probabilities = torch.log_softmax(answers[Columns.ACTION_DIST_INPUTS], -1)
            actions = rows[Columns.ACTIONS].long()[:, None]
            taken = log_probabilities.gather(1, actions).squeeze(1)
            by_newest = {
                Columns.ACTION_LOGP: taken,
                Columns.VF_PREDS: answers.get(Columns.VF_PREDS, rows[Columns.VF_PREDS]),
                Columns.ACTION_DIST_INPUTS: log_probabilities,
                IMPORTANCE: (taken - rows[Columns.ACTION_LOGP]).exp(),
            }
            for name in (*_OF_THE_POLICY, IMPORTANCE):
                if name in batch:
                    batch[name][part] = by_newest[name]
                    rows[name] = by_newest[name]
            return rows

        return rows_of

    def _mean_over_learners(self, value: torch.Tensor) -> float:
        if self.config.num_learners > 1:
            torch.distributed.all_reduce(value, torch.distributed.ReduceOp.AVG)
        return float(value)


def rows_at(batch: SampleBatch, positions: torch.Tensor) -> SampleBatch:
    """Return the decisions at `positions`, int64 [n]."""
    # Rows are copied whole; indexing would go through observations number by number.
    columns: dict[str, Any] = batch
    return SampleBatch(
        {name: column.index_select(0, positions) for name, column in columns.items()}
    )


def ppo_loss(
    logits: torch.Tensor,
    values: torch.Tensor | None,
    batch: dict[str, torch.Tensor],
    settings: PPOSettings,
    *,
    ent_coef: float,
    kl_coef: float = 0.0,
    predicted_advantages: torch.Tensor | None = None,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return the loss to minimise, and its parts for logging, without gradients and by RLlib's
    names.

    `logits` [B, A] and `values` [B] are the network's current answers; in place of values that have
    a network of their own, it answers with `predicted_advantages` [B]. `batch` holds the rollout's
    actions, values and masks, and for the KL penalty also its log-probabilities [B, A]. With the
    column `IMPORTANCE`, values and log-probabilities are those of a newer policy than the one that
    played (the decoupled objective)."""
    log_probabilities = torch.log_softmax(mask_logits(logits, batch.get(ACTION_MASK)), -1)
    taken = log_probabilities.gather(1, batch[Columns.ACTIONS].long()[:, None]).squeeze(1)
    log_ratio = taken - batch[Columns.ACTION_LOGP]
    ratio = log_ratio.exp()

    advantages = batch[ADVANTAGES]
    # Of several stretches of a memory, one may be a minibatch of a single decision.
    if settings.norm_adv and len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    weighted = advantages * batch[IMPORTANCE] if IMPORTANCE in batch else advantages
    clipped_ratio = ratio.clamp(1 - settings.clip_coef, 1 + settings.clip_coef)
    policy_loss = torch.max(-weighted * ratio, -weighted * clipped_ratio).mean()

    # A masked action has probability 0 and a large, finite logarithm: it adds 0.
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1).mean()
    loss = policy_loss
    parts: dict[str, Any] = {POLICY_LOSS_KEY: policy_loss.detach()}
    if values is not None:
        vf_loss = value_loss(values, batch, settings)
        loss = loss + settings.vf_coef * vf_loss
        parts[VF_LOSS_KEY] = vf_loss.detach()
    if predicted_advantages is not None:
        adv_loss = (predicted_advantages - advantages).square().mean()
        loss = loss + settings.adv_coef * adv_loss
        parts[ADVANTAGE_LOSS_KEY] = adv_loss.detach()
    loss = loss - ent_coef * entropy
    parts[ENTROPY_KEY] = entropy.detach()
    with torch.no_grad():
        targets = batch[VALUE_TARGETS]
        parts |= {
            "approx_kl": ((ratio - 1) - log_ratio).mean(),
            "clipfrac": ((ratio - 1).abs() > settings.clip_coef).float().mean(),
            LEARNER_RESULTS_VF_EXPLAINED_VAR_KEY: (
                1
                - _variance(targets - batch[Columns.VF_PREDS]) / _variance(targets).clamp_min(1e-8)
            ),
        }
    if settings.kl_coef:
        old = batch[Columns.ACTION_DIST_INPUTS]
        kl = (old.exp() * (old - log_probabilities)).sum(-1).mean()
        loss = loss + kl_coef * kl
        parts[LEARNER_RESULTS_KL_KEY] = kl.detach()
    return loss, parts


def value_loss(
    values: torch.Tensor, batch: dict[str, torch.Tensor], settings: PPOSettings
) -> torch.Tensor:
    """Return half the mean squared error of `values` [B], which is clipped if `clip_vloss` says
    so.
    """
    targets = batch[VALUE_TARGETS]
    old_values = batch[Columns.VF_PREDS]
    squared_error = (values - targets).square()
    if settings.clip_vloss:
        near = old_values + (values - old_values).clamp(-settings.clip_coef, settings.clip_coef)
        squared_error = torch.max(squared_error, (near - targets).square())
    return 0.5 * squared_error.mean()


def _variance(values: torch.Tensor) -> torch.Tensor:
    """The mean squared deviation, which a single value has, too."""
    return values.var(correction=0)


def adapted_kl_coef(kl_coef: float, kl: float, target: float, *, least: float = 0.0) -> float:
    """Return the weight of the penalty for the next batch: doubled or halved if `kl` is off by a
    factor of 1.5 (section 4).

    It isn't halved below `least`, because after many quiet updates it would need as many to grow
    again."""
    if kl > 1.5 * target:
        return max(2 * kl_coef, least)
    if kl < target / 1.5:
        return max(kl_coef / 2, least)
    return kl_coef
