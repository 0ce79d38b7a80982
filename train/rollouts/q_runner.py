"""The env runner of Q-learning: it plays epsilon-greedily and returns rollouts for replay."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns

from train.rllib.env_runner import BatchEnvRunner, Cut
from train.rllib.modules import ACTION_MASK, QModule, mask_logits
from train.rollouts.n_step import GOES_ON, TERMINATED, TRUNCATED
from train.rollouts.replay_buffer import Rollout


class QRunner(BatchEnvRunner):
    """Plays epsilon-greedily. `sample` returns one `Rollout`, whose columns the next call
    overwrites.
    """

    module: QModule

    inference_only = True

    def make_env(self) -> None:
        super().make_env()
        self._new_stream()
        self.epsilons = np.ones(self.num_envs, np.float32)

    def set_epsilon(self, epsilon: float) -> None:
        """Set the probability of a random action, for every row."""
        self.epsilons[:] = epsilon

    def play(self, *, epsilon: float | None = None) -> tuple[Rollout, Any]:
        """Play one rollout, if `epsilon` is given with that probability of a random action. Returns
        it and the metrics.
        """
        if epsilon is not None:
            self.set_epsilon(epsilon)
        return super().play()

    def sample(self, *, force_reset: bool = False, **arguments: Any) -> list[Rollout]:  # type: ignore[override]
        if force_reset:
            self._new_stream()
        return super().sample(force_reset=force_reset, **arguments)  # type: ignore[return-value]

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._new_stream()

    def _new_stream(self) -> None:
        self._stream = uuid.uuid4().hex
        self._sequence = 0

    def _own_columns(self, size: int) -> dict[str, np.ndarray]:
        return {"endings": np.empty(size, np.uint8)}

    def _decide(self, entry: dict[str, np.ndarray], explore: bool, random_actions: bool) -> None:
        # An evaluation plays what was learned.
        explore = explore and not self.config.in_evaluation
        if explore:
            self.module.network.draw_noise(self._generator)
        q_values = self.module.rollout(torch.from_numpy(entry[Columns.OBS]).to(self._device))[0]
        if ACTION_MASK in entry:
            mask = torch.from_numpy(entry[ACTION_MASK]).to(self._device)
        else:
            mask = None
        q_values = mask_logits(q_values, mask)
        chosen = q_values.argmax(-1)
        if explore or random_actions:
            lots = torch.rand(q_values.shape, generator=self._generator, device=self._device)
            # The highest lot among the allowed actions: each is as likely as the others.
            at_random = mask_logits(lots, mask).argmax(-1)
            epsilons = torch.from_numpy(self.epsilons[entry["rows"]]).to(self._device)
            coins = torch.rand(len(chosen), generator=self._generator, device=self._device)
            chosen = torch.where((coins < epsilons) | random_actions, at_random, chosen)
        entry[Columns.ACTIONS][:] = chosen.cpu().numpy()
        self._note_values(entry, q_values, chosen)

    def _note_values(
        self, entry: dict[str, np.ndarray], q_values: torch.Tensor, chosen: torch.Tensor
    ) -> None:
        """Masked Q values [n, A] and what was chosen [n], for runners that work out priorities."""

    def _note_outcome(
        self, entry: dict[str, np.ndarray], rows: np.ndarray, start: int, cut: Cut
    ) -> None:
        env = self.env
        entry["rewards"][:] = env.rewards[rows]
        entry["endings"][:] = np.select(
            [env.terminated[rows], env.truncated[rows]], [TERMINATED, TRUNCATED], GOES_ON
        )
        self._note_cut(rows, start, cut)

    def _collate(self, columns: dict[str, np.ndarray], cut: Cut, steps: int) -> Rollout:  # type: ignore[override]
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
