"""A recurrent policy's memory (`ppo.lstm_units`), and how its experience is split into minibatches.

Experience stays flat, with one entry per agent step. Each entry names its stretch (part of an
episode within one rollout) and holds the state before it. Learning replays each stretch from the
state with which its first entry was played ("stored state": Kapturowski et al. 2019, R2D2, section
3). Rows that wait have no entries."""

from __future__ import annotations

import numpy as np
import torch

STATE = "state"
STRETCH = "stretch"
"""Names of two columns: the state before an entry, float32 [B, 2 · units], and the number of its
stretch, int64 [B].
"""
_STRETCHES_A_RUNNER = 1 << 40


class RowMemory:
    """The state and the current stretch of each row. `states`, float32 (rows, 2 · units), are those
    for the rows' next decisions.

    The stretches of different env runners (`worker`, counted from 0) have different numbers."""

    def __init__(self, num_rows: int, units: int, *, worker: int) -> None:
        self.states = np.zeros((num_rows, 2 * units), np.float32)
        self._stretches = np.zeros(num_rows, np.int64)
        self._next_stretch = _STRETCHES_A_RUNNER * worker

    def columns(self, size: int) -> dict[str, np.ndarray]:
        """Return empty columns for `size` entries."""
        return {
            STATE: np.empty((size, self.states.shape[1]), np.float32),
            STRETCH: np.empty(size, np.int64),
        }

    def write_to(self, entry: dict[str, np.ndarray]) -> None:
        """Fill in the two columns of an entry, whose `rows` are about to act."""
        entry[STATE][:] = self.states[entry["rows"]]
        entry[STRETCH][:] = self._stretches[entry["rows"]]

    def begin_rollout(self) -> None:
        """Begin a new stretch for every row, with the state that it has."""
        self._begin_stretches(np.arange(len(self._stretches)))

    def forget(self, rows: np.ndarray | None = None) -> None:
        """Forget the state of `rows`, int64 (n,), because their episodes ended; None: of all."""
        if rows is None:
            rows = np.arange(len(self._stretches))
        self.states[rows] = 0.0
        self._begin_stretches(rows)

    def _begin_stretches(self, rows: np.ndarray) -> None:
        self._stretches[rows] = self._next_stretch + np.arange(len(rows))
        self._next_stretch += len(rows)


def stretch_lengths(stretches: torch.Tensor) -> torch.Tensor:
    """Return the length of each stretch, int64 (S,): how many successive entries have the same
    number.
    """
    return torch.unique_consecutive(stretches, return_counts=True)[1]


def shuffled_stretches(
    stretches: torch.Tensor, num_parts: int, generator: torch.Generator
) -> list[torch.Tensor]:
    """Divide whole stretches, in random order, into `num_parts` parts of about equal size.

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
