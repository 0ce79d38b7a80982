"""Parallelised Q-learning (PQN: Gallici et al. 2024, arXiv 2407.04811): configuration, returns and
loss.

It learns Q values as PPO learns a policy: from each rollout of all games in some epochs, and then
never again. There is neither a replay memory nor a target network.

1. **Collect**: `train.ppo.PPO.training_step` has every env runner play some steps of all its games.
   `PQNRunner.decide` chooses epsilon-greedily.
2. **Returns**: `train.ppo.PPORunner.collate` works out the λ-returns. Those of Q-learning are the
   advantages of PPO plus the values, where a state's value is its highest Q value (eq. 5 of the
   paper).
3. **Epochs**: `train.ppo.PPOLearner.minibatches` goes through the rollout in shuffled minibatches.
4. **Loss**: `pqn_loss`.
5. **Step**: the learner's. Then the env runners get the new weights.

`train.settings.pqn` lists the settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.policy.sample_batch import SampleBatch

from train.dqn import epsilon_greedy
from train.ppo import PPO, PPOConfig, PPOLearner, PPORunner, rows_at
from train.rllib.modules import NetworkModule, mask_logits
from train.rollouts.columns import VALUE_TARGETS
from train.settings import PQNSettings
from train.settings.schedule import value_at


class PQNConfig(PPOConfig):
    """RLlib's configuration of a run of PQN."""

    settings: PQNSettings

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class or PQN)
        self.settings = PQNSettings()

    def runner_and_module(self) -> tuple[type[PQNRunner], type[NetworkModule]]:
        return PQNRunner, NetworkModule

    def get_default_learner_class(self) -> type[TorchLearner]:
        return PQNLearner


class PQN(PPO):
    """An RLlib `Algorithm` with PPO's iteration. Env runners explore by `epsilon` of the decisions
    so far.
    """

    config: PQNConfig

    @classmethod
    def get_default_config(cls) -> PQNConfig:
        return PQNConfig()

    def _play_on_all(self, method: str = "play", **arguments: Any) -> list[tuple[Any, Any]]:
        epsilon = value_at(self.config.settings.epsilon, self.agent_steps())
        return super()._play_on_all(method, epsilon=epsilon, **arguments)


class PQNRunner(PPORunner):
    """Plays epsilon-greedily. `sample` returns a `Fragment` with λ-returns."""

    epsilon = 1.0

    def play(self, *, epsilon: float | None = None) -> tuple[Any, Any]:
        """Play one rollout, with a new `epsilon` if given. Returns it and the metrics."""
        self._explore_by(epsilon)
        return super().play()

    def play_by_reference(self, *, parts: int, epsilon: float | None = None) -> tuple[Any, Any]:
        """The same, with the rollout in `parts` in Ray's object store."""
        self._explore_by(epsilon)
        return super().play_by_reference(parts=parts)

    def _explore_by(self, epsilon: float | None) -> None:
        if epsilon is not None:
            self.epsilon = epsilon

    def own_columns(self, size: int) -> dict[str, np.ndarray]:
        columns = super().own_columns(size)
        del columns[Columns.ACTION_LOGP]
        return columns

    def decide(self, entry: dict[str, np.ndarray], explore: bool, random_actions: bool) -> None:
        """Choose the actions, and keep the values of their states: the highest Q values."""
        mask = self._mask_of(entry)
        q_values = self._q_values(entry[Columns.OBS], mask)
        values, actions = q_values.max(-1)
        # An evaluation plays what was learned.
        if random_actions or (explore and not self.config.in_evaluation):
            epsilon = 1.0 if random_actions else self.epsilon
            epsilons = torch.full_like(values, epsilon)
            actions = epsilon_greedy(q_values, mask, epsilons=epsilons, generator=self._generator)
        entry[Columns.ACTIONS][:] = actions.cpu().numpy()
        entry[Columns.VF_PREDS][:] = values.cpu().numpy()

    def _last_values(self) -> np.ndarray:
        going_on = np.flatnonzero(self.env.valid)
        mask = None
        if self.env.action_mask is not None:
            mask = torch.from_numpy(self.env.action_mask[going_on]).to(self._device)
        q_values = self._q_values(self.env.observations[going_on], mask)
        values = np.zeros(self.num_envs, np.float32)
        values[going_on] = q_values.max(-1).values.cpu().numpy()
        return values

    def _q_values(self, observations: np.ndarray, mask: torch.Tensor | None) -> torch.Tensor:
        """Return Q values float32 [n, A], very low ones for what `mask` forbids."""
        q_values, _ = self.module.rollout(torch.from_numpy(observations).to(self._device))
        return mask_logits(q_values, mask)


class PQNLearner(PPOLearner):
    """Learns Q values from fragments, in several epochs of minibatches."""

    config: PQNConfig

    def loss(
        self, answers: dict[str, torch.Tensor], batch: dict[str, Any]
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        return pqn_loss(answers[Columns.ACTION_DIST_INPUTS], batch)

    def _near_the_newest_policy(self, batch: SampleBatch) -> Callable[[torch.Tensor], SampleBatch]:
        """Leave `batch` as it is: Q values aren't clipped around those that played."""
        return partial(rows_at, batch)


def pqn_loss(
    q_values: torch.Tensor, batch: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return half the mean squared error to the λ-returns, and metrics; `q_values` [B, A]."""
    taken = q_values.gather(1, batch[Columns.ACTIONS].long()[:, None]).squeeze(1)
    errors = taken - batch[VALUE_TARGETS]
    loss = 0.5 * errors.square().mean()
    return loss, {
        "qf_loss": loss.detach(),
        "td_error_mean": errors.detach().abs().mean(),
        "qf_mean": taken.detach().mean(),
    }
