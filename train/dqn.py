"""Deep Q-learning (Mnih et al. 2015): configuration, iteration, targets and loss.

It has the extensions that Rainbow gathers (Hessel et al. 2018, arXiv 1710.02298), each with its own
setting: double, dueling, n-step, prioritised, distributional and noisy.

1. **Collect**: `DQN.training_step` has every env runner play some steps (`QRunner`), and the replay
   memory keeps them (`train.rollouts.replay_buffer`).
2. **Batch**: `ReplayBuffer.sample` draws one by priority.
3. **Loss**: `dqn_losses`, from the network's answers (`agents.networks.q_network`) and those of its
   target network.
4. **Step**: RLlib's, with Adam. The errors become the batch's new priorities, and the target
   network is updated now and then (`follow`).

RLlib starts the processes and calls these methods: `train.rllib.env_runner` has the loop over the
steps of a rollout, and `train.rllib.learner` the order of the calls within an update.
`train.settings.dqn` lists the settings."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.metrics import (
    ENV_RUNNER_SAMPLING_TIMER,
    LEARNER_UPDATE_TIMER,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TD_ERROR_KEY,
    TIMERS,
)
from ray.rllib.utils.numpy import convert_to_numpy

from agents.networks.q_network import q_values
from train.rllib.batched_algorithm import AGENT_STEPS_BEFORE, LEARNER_SECONDS, BatchedAlgorithm
from train.rllib.batched_config import BatchedConfig
from train.rllib.env_runner import BatchEnvRunner, Cut
from train.rllib.learner import FragmentLearner
from train.rllib.modules import ATOMS, NEXT_ATOMS, TARGET_ATOMS, QModule, mask_logits
from train.rollouts.fragment import Fragment
from train.rollouts.n_step import GOES_ON, TERMINATED, TRUNCATED
from train.rollouts.replay_buffer import (
    CELLS,
    DISCOUNTS,
    NEXT_ACTION_MASK,
    STAMPS,
    WEIGHTS,
    ReplayBuffer,
    Rollout,
)
from train.settings import DQNSettings, QSettings
from train.settings.schedule import value_at

_SECONDS_BETWEEN_TUNING = 0.5


class QConfig(BatchedConfig):
    """What the configurations of DQN and APEX share."""

    settings: QSettings

    def get_default_learner_class(self) -> type[TorchLearner]:
        return DQNLearner


class DQNConfig(QConfig):
    """RLlib's configuration of a run of DQN."""

    settings: DQNSettings

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class or DQN)
        self.settings = DQNSettings()

    def runner_and_module(self) -> tuple[type[QRunner], type[QModule]]:
        return QRunner, QModule


@dataclass(frozen=True)
class Drawn:
    """A batch from the replay memory: the learners' part, and the cells whose priorities it
    sets.
    """

    experience: dict[str, Any]
    """As `LearnerGroup.update` takes it: a fragment, or a reference to the part of each learner."""
    cells: np.ndarray
    stamps: np.ndarray

    @classmethod
    def of(cls, batch: dict[str, np.ndarray], num_references: int = 0) -> Drawn:
        """Split what `ReplayBuffer.sample` returned. References stay in Ray's object store."""
        columns = {name: column for name, column in batch.items() if name not in (CELLS, STAMPS)}
        fragment = Fragment(columns, env_steps=len(batch[CELLS]))
        experience: dict[str, Any] = {"episodes": [fragment]}
        if num_references:
            experience = {
                "episodes_refs": [ray.put([part]) for part in fragment.split(num_references)]
            }
        return cls(experience, batch[CELLS], batch[STAMPS])


class QAlgorithm(BatchedAlgorithm):
    """What the algorithms of DQN and APEX share: an update."""

    config: QConfig

    def _learn(self, drawn: Drawn, steps: float) -> np.ndarray:
        """Learn from one batch. Return its TD errors, float32 (B,)."""
        with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            results = self._update_learners(
                **drawn.experience, timesteps={AGENT_STEPS_BEFORE: steps}
            )
        errors = [
            convert_to_numpy(result[DEFAULT_MODULE_ID].pop(TD_ERROR_KEY).peek())
            for result in results
        ]
        self._log_learned(results)
        return np.concatenate([np.concatenate(parts) for parts in errors])


class DQN(QAlgorithm):
    """An RLlib `Algorithm`. Each iteration plays one rollout on every env runner, then makes the
    updates that are due.

    Checkpoints leave out the replay memory. A restored algorithm refills it up to `learning_starts`
    before it continues to learn."""

    config: DQNConfig

    @classmethod
    def get_default_config(cls) -> DQNConfig:
        return DQNConfig()

    def setup(self, config: AlgorithmConfig) -> None:  # type: ignore[override]
        super().setup(config)
        self.replay = ReplayBuffer.of(
            self.config.settings,
            num_rings=max(1, self.config.num_env_runners),
            seed=self.config.seed or 0,
        )
        self._updates_due = 0.0

    def training_step(self) -> None:
        settings = self.config.settings
        steps = self.agent_steps()
        with self.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
            played = self._play_on_all(epsilon=value_at(settings.epsilon, steps))
        if not played:
            return
        self._log_played([metrics for _, metrics in played])
        began = time.perf_counter()
        for rollout, _ in played:
            self.replay.add(rollout)
        if self.replay.added >= settings.learning_starts and len(self.replay):
            taken = sum(rollout.agent_steps() for rollout, _ in played)
            self._updates_due += settings.replay_ratio * taken / settings.train_batch_size
            while self._updates_due >= 1.0:
                self._updates_due -= 1.0
                batch = self.replay.sample(
                    settings.train_batch_size, beta=value_at(settings.priority_beta, steps)
                )
                drawn = Drawn.of(batch)
                self.replay.update_priorities(drawn.cells, drawn.stamps, self._learn(drawn, steps))
            with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
                self.env_runner_group.sync_weights(
                    from_worker_or_learner_group=self.learner_group,
                    policies=[DEFAULT_MODULE_ID],
                    inference_only=True,
                )
        self.metrics.log_value(LEARNER_SECONDS, time.perf_counter() - began, window=1)


class QRunner(BatchEnvRunner):
    """Plays epsilon-greedily. `sample` returns one `Rollout`, whose columns the next call
    overwrites.
    """

    module: QModule

    inference_only = True

    def make_env(self) -> None:
        super().make_env()
        self.epsilons = np.ones(self.num_envs, np.float32)

    def set_epsilon(self, epsilon: float) -> None:
        """Set the probability of a random action, for every row."""
        self.epsilons[:] = epsilon

    def play(self, *, epsilon: float | None = None) -> tuple[Rollout, Any]:
        """Play one rollout, with a new `epsilon` if given. Returns it and the metrics."""
        if epsilon is not None:
            self.set_epsilon(epsilon)
        return super().play()

    def _forget_games(self) -> None:
        super()._forget_games()
        self._stream = uuid.uuid4().hex
        self._sequence = 0

    def own_columns(self, size: int) -> dict[str, np.ndarray]:
        return {"endings": np.empty(size, np.uint8)}

    def decide(self, entry: dict[str, np.ndarray], explore: bool, random_actions: bool) -> None:
        # An evaluation plays what was learned.
        explore = explore and not self.config.in_evaluation
        if explore:
            self.module.network.draw_noise(self._generator)
        q_values = self.module.rollout(torch.from_numpy(entry[Columns.OBS]).to(self._device))[0]
        mask = self._mask_of(entry)
        q_values = mask_logits(q_values, mask)
        actions = q_values.argmax(-1)
        if explore or random_actions:
            epsilons = torch.from_numpy(self.epsilons[entry["rows"]]).to(self._device)
            if random_actions:
                epsilons = torch.ones_like(epsilons)
            actions = epsilon_greedy(q_values, mask, epsilons=epsilons, generator=self._generator)
        entry[Columns.ACTIONS][:] = actions.cpu().numpy()
        self._note_values(entry, q_values, actions)

    def _note_values(
        self, entry: dict[str, np.ndarray], q_values: torch.Tensor, actions: torch.Tensor
    ) -> None:
        """Keep what first priorities follow from, in runners that work them out. `q_values` [n, A]
        are masked; `actions` [n] were taken.
        """

    def note_outcome(
        self, entry: dict[str, np.ndarray], rows: np.ndarray, start: int, cut: Cut
    ) -> None:
        env = self.env
        entry["rewards"][:] = env.rewards[rows]
        entry["endings"][:] = np.select(
            [env.terminated[rows], env.truncated[rows]], [TERMINATED, TRUNCATED], GOES_ON
        )
        self._note_cut(rows, start, cut)

    def collate(self, columns: dict[str, np.ndarray], cut: Cut, steps: int) -> Rollout:
        entries, observations = self._joined(cut)
        self._sequence += 1
        return Rollout(
            columns=columns,
            final_entries=entries,
            final_observations=observations,
            steps=steps,
            num_rows=self.num_envs,
            steps_of_games=self._env_steps,
            worker=max(0, self.worker_index - 1),
            stream=self._stream,
            sequence=self._sequence - 1,
        )


class DQNLearner(FragmentLearner):
    """Makes one step of Adam per batch. The target network follows every `target_update_freq`
    steps.
    """

    config: QConfig

    def build(self) -> None:
        self._updates = 0
        self._tuned_at = time.monotonic()
        super().build()
        self._noise = torch.Generator(self._device).manual_seed(self.config.seed or 0)

    def configure_optimizers_for_module(
        self, module_id: str, config: AlgorithmConfig | None = None
    ) -> None:
        """Make Adam. `Learner.build` calls it."""
        parameters = [p for p in self.get_parameters(self.module[module_id]) if p.requires_grad]
        lr = value_at(self.config.settings.learning_rate, 0)
        eps = self.config.settings.adam_epsilon
        optimizer = torch.optim.Adam(parameters, lr=lr, eps=eps, fused=True)
        # No schedule of RLlib's: it would be applied after the update, which a resumed run forgets.
        self.register_optimizer(module_id=module_id, optimizer=optimizer, params=parameters)

    def before_update(self, timesteps: dict[str, Any]) -> None:
        """Set the learning rate by the decisions so far, and draw new noise for the heads."""
        # Updates are short here: without a pause between them the tuner's probes would take longer
        # than they do.
        if time.monotonic() - self._tuned_at > _SECONDS_BETWEEN_TUNING:
            self._threads.before_update()
            self._tuned_at = time.monotonic()
        lr = value_at(self.config.settings.learning_rate, timesteps[AGENT_STEPS_BEFORE])
        self.set_lr(lr)
        for network in (self.network_module.network, self.network_module.target):
            network.draw_noise(self._noise)

    def loss(
        self, answers: dict[str, torch.Tensor], batch: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        support = self.network_module.network.support
        losses, errors = dqn_losses(answers, batch, support, double_q=self.config.settings.double_q)
        loss = (batch[WEIGHTS] * losses).mean()
        # Whole, because the errors become priorities.
        self.metrics.log_value((DEFAULT_MODULE_ID, TD_ERROR_KEY), errors, reduce="item_series")
        actions = batch[Columns.ACTIONS][:, None]
        taken = q_values(answers[ATOMS], support).gather(1, actions).squeeze(1)
        return loss, {
            "qf_loss": loss.detach(),
            "td_error_mean": errors.mean(),
            "qf_mean": taken.mean().detach(),
        }

    def after_update(self) -> None:
        """Update the target network if due."""
        self._updates += 1
        if self._updates % self.config.settings.target_update_freq == 0:
            module = self.network_module
            follow(module.target, module.network, tau=self.config.settings.tau)

    @property
    def network_module(self) -> QModule:
        module = super().network_module
        assert isinstance(module, QModule)
        return module

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_state(*args, **kwargs), "updates": self._updates}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._updates = state.get("updates", self._updates)


def epsilon_greedy(
    q_values: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    epsilons: torch.Tensor,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Return the best action of each row, int64 [n], or with its probability in `epsilons`, float
    [n], a random one of those that `mask`, bool [n, A], allows.

    `q_values` [n, A] are already masked."""
    best = q_values.argmax(-1)
    lots = torch.rand(q_values.shape, generator=generator, device=q_values.device)
    # The highest lot among the allowed actions: each is as likely as the others.
    random_ones = mask_logits(lots, mask).argmax(-1)
    coins = torch.rand(len(best), generator=generator, device=q_values.device)
    return torch.where(coins < epsilons, random_ones, best)


def follow(target: torch.nn.Module, network: torch.nn.Module, *, tau: float) -> None:
    """Move the weights of `target` by the fraction `tau` towards those of `network`."""
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), network.parameters(), strict=True):
            slow.lerp_(fast, tau)


def dqn_losses(
    answers: dict[str, torch.Tensor],
    batch: dict[str, torch.Tensor],
    support: torch.Tensor,
    *,
    double_q: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of each decision [B], and the error that sets its priority [B], which has no
    gradient.

    `answers` are what `QModule` returns in training. With one atom, the loss is the Huber loss of
    the TD error, and the error is its size. With more atoms, they are the cross-entropy to the
    projected target distribution and the Kullback-Leibler divergence (section "Rainbow" of the
    paper)."""
    rows = torch.arange(len(batch[Columns.ACTIONS]), device=support.device)
    selector = answers[NEXT_ATOMS if double_q else TARGET_ATOMS]
    following = mask_logits(q_values(selector, support), batch.get(NEXT_ACTION_MASK)).argmax(-1)
    taken = answers[ATOMS][rows, batch[Columns.ACTIONS]]
    next_atoms = answers[TARGET_ATOMS][rows, following]
    rewards = batch[Columns.REWARDS]
    discounts = batch[DISCOUNTS]
    if len(support) == 1:
        errors = taken.squeeze(-1) - (rewards + discounts * next_atoms.squeeze(-1))
        return (
            torch.nn.functional.huber_loss(errors, torch.zeros_like(errors), reduction="none"),
            errors.detach().abs(),
        )
    targets = project(next_atoms.softmax(-1), rewards, discounts, support)
    losses = -(targets * taken.log_softmax(-1)).sum(-1)
    entropies = -torch.xlogy(targets, targets).sum(-1)
    return losses, (losses.detach() - entropies).clamp_min(0.0)


def project(
    probabilities: torch.Tensor,
    rewards: torch.Tensor,
    discounts: torch.Tensor,
    support: torch.Tensor,
) -> torch.Tensor:
    """Return the distribution of reward + discount · return on the atoms of `support` [N], as [B,
    N] (arXiv 1707.06887, eq. 7).

    `probabilities` [B, N] are those of the returns. A shifted atom's probability is split between
    its two neighbours; the nearer one gets more."""
    step = support[1] - support[0]
    shifted = (rewards[:, None] + discounts[:, None] * support).clamp(support[0], support[-1])
    nearness = (1.0 - (shifted[:, None, :] - support[:, None]).abs() / step).clamp_min(0.0)
    return (nearness * probabilities[:, None, :]).sum(-1)
