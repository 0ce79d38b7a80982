"""Experience whose advantages the learner computes, because its policy is newer than the one that
played.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from train.rollouts.fragment import Fragment


class Trajectory(Fragment):
    """A fragment in order of time, with the observations after its rows' last steps.

    `columns` hold observations, actions and their probabilities, and also `rows` integers (n,),
    `rewards` float32 (n,) and `ended` bool (n,).

    * `final_entries`, int64 (F,), are the entries whose episode was truncated; `final_observations`
      (F, …) its last ones.
    * `last_rows`, int64 (L,), are the rows that are to act next; `last_observations` (L, …) is what
      they see then.
    * `num_rows` is the number of rows of the world.
    """

    def __init__(
        self,
        columns: dict[str, np.ndarray],
        env_steps: int,
        *,
        final_entries: np.ndarray,
        final_observations: np.ndarray,
        last_rows: np.ndarray,
        last_observations: np.ndarray,
        num_rows: int,
    ) -> None:
        super().__init__(columns, env_steps)
        self.final_entries = final_entries
        self.final_observations = final_observations
        self.last_rows = last_rows
        self.last_observations = last_observations
        self.num_rows = num_rows

    def split(self, parts: int) -> list[Fragment]:
        """Return `parts` trajectories of whole rows, each with a part of the env steps."""
        if parts == 1:
            return [self]
        return [self._of_rows(part, parts) for part in range(parts)]

    def _of_rows(self, part: int, parts: int) -> Trajectory:
        entries = np.flatnonzero(self.columns["rows"] % parts == part)
        finals = np.isin(self.final_entries, entries)
        lasts = self.last_rows % parts == part
        return Trajectory(
            {name: column[entries] for name, column in self.columns.items()},
            round(self.env_steps() * len(entries) / max(1, len(self))),
            final_entries=np.searchsorted(entries, self.final_entries[finals]),
            final_observations=self.final_observations[finals],
            last_rows=self.last_rows[lasts],
            last_observations=self.last_observations[lasts],
            num_rows=self.num_rows,
        )

    def slice(self, part: builtins.slice, **_: Any) -> Fragment:
        """Raise `TypeError`: a stretch of time lacks its rows' next steps. `split` divides whole
        rows.
        """
        raise TypeError(
            "a trajectory can't be sliced in time, because its targets follow from the steps after"
            " it; use split"
        )
