"""PPO with a memory: the env runner and the module for networks that carry a state from step to
step (`ppo.lstm_units`).

Experience stays flat, with one entry per agent step. Each entry names its stretch (part of an
episode within one rollout) and holds the state before it. Learning replays each stretch from the
state with which its first entry was played ("stored state": Kapturowski et al. 2019, R2D2, section
3). Rows that wait have no entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ray.rllib.core.columns import Columns

from agents.networks.recurrent import Recurrent
from train.rllib.env_runner import BatchEnvRunner, Cut
from train.rllib.modules import NetworkModule
from train.rollouts.fragment import Fragment

STATE = "state"
STRETCH = "stretch"
"""Names of two columns: the state before an entry, float32 [B, 2 · units], and the number of its
stretch, int64 [B].
"""
_STRETCHES_A_RUNNER = 1 << 40


class RecurrentModule(NetworkModule):
    """The network `recurrent` as an RLlib module, with the `model_config` of `NetworkModule`."""

    network: Recurrent

    def recall(
        self, observations: torch.Tensor, state: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Make one step of rows with their states. Returns what `Recurrent` returns, in the
        precision that learning uses.
        """
        return self._through(
            observations,
            torch.ones(len(observations), dtype=torch.int64, device=state.device),
            state,
        )

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, torch.Tensor]:
        lengths = stretch_lengths(batch[STRETCH])
        logits, values, _ = self._through(
            batch[Columns.OBS], lengths, batch[STATE][lengths.cumsum(0) - lengths]
        )
        return self._output(batch, (logits, values))

    def _through(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        with torch.autocast(arguments[0].device.type, torch.bfloat16, enabled=self.bf16):
            return self.network(*arguments)


class RecurrentRunner(BatchEnvRunner):
    """Remembers a state for each row, forgets it when the row's episode ends, and begins new
    stretches with each rollout.
    """

    module: RecurrentModule

    def make_env(self) -> None:
        super().make_env()
        self._has_states = False
        self._stretches = np.zeros(self.num_envs, np.int64)
        self._next_stretch = _STRETCHES_A_RUNNER * (self.worker_index or 0)

    def sample(self, *, force_reset: bool = False, **arguments: Any) -> list[Fragment]:  # type: ignore[override]
        if not self._has_states or force_reset:
            self._states = np.zeros((self.num_envs, 2 * self._units), np.float32)
            self._has_states = True
        self._begin_stretches(np.arange(self.num_envs))
        return super().sample(force_reset=force_reset, **arguments)

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._has_states = False

    @property
    def _units(self) -> int:
        return self.module.network.lstm.hidden_size

    def _begin_stretches(self, rows: np.ndarray) -> None:
        self._stretches[rows] = self._next_stretch + np.arange(len(rows))
        self._next_stretch += len(rows)

    def _own_columns(self, size: int) -> dict[str, np.ndarray]:
        own: dict[str, np.ndarray] = {
            STATE: np.empty((size, 2 * self._units), np.float32),
            STRETCH: np.empty(size, np.int64),
        }
        return {**super()._own_columns(size), **own}

    def _answer(self, entry: dict[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        rows = entry["rows"]
        entry[STATE][:], entry[STRETCH][:] = self._states[rows], self._stretches[rows]
        observations, state = (
            torch.from_numpy(entry[name]).to(self._device) for name in (Columns.OBS, STATE)
        )
        logits, values, after = self.module.recall(observations, state)
        self._states[rows] = after.cpu().numpy()
        return logits, values

    def _note_outcome(
        self, entry: dict[str, np.ndarray], rows: np.ndarray, start: int, cut: Cut
    ) -> None:
        truncated: Cut = []
        super()._note_outcome(entry, rows, start, truncated)
        # At once, before the state that belongs to the last observation is forgotten.
        for entries, observations in truncated:
            entry["final_values"][entries - start] = self._values(
                observations, rows[entries - start]
            )
        ended = rows[entry["ended"]]
        self._states[ended] = 0.0
        self._begin_stretches(ended)

    def _rate(self, observations: np.ndarray, rows: np.ndarray) -> torch.Tensor:
        state = torch.from_numpy(self._states[rows]).to(self._device)
        return self.module.recall(torch.from_numpy(observations).to(self._device), state)[1]


def stretch_lengths(stretches: torch.Tensor) -> torch.Tensor:
    """Return the length of each stretch, int64 (S,): how many successive entries have the same
    number.
    """
    return torch.unique_consecutive(stretches, return_counts=True)[1]


def shuffled_stretches(
    stretches: torch.Tensor, num_parts: int, generator: torch.Generator
) -> list[torch.Tensor]:
    """Deal whole stretches, in random order, into `num_parts` parts of about equally many.

    If there are fewer stretches than parts, the longest are cut in halves until each part gets one:
    every learner makes as many steps as the others, and each entry holds a state from which a
    stretch can begin. Returns the positions of the parts' entries. There must be at least as many
    entries as parts."""
    by_stretch = torch.argsort(stretches, stable=True)
    pieces = list(by_stretch.split(stretch_lengths(stretches[by_stretch]).tolist()))
    while len(pieces) < num_parts:
        longest = max(range(len(pieces)), key=lambda k: len(pieces[k]))
        pieces[longest : longest + 1] = pieces[longest].tensor_split(2)
    parts = torch.randperm(len(pieces), generator=generator).tensor_split(num_parts)
    return [torch.cat([pieces[k] for k in part.tolist()]) for part in parts]
