"""`Fragment`: a stretch of experience as flat arrays. It travels where RLlib expects episodes."""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np


class Fragment:
    """Columns of equal length with one entry per agent step, and the number of env steps that they
    stand for.

    This is a plain class and no dict, because RLlib takes containers apart on the way to the
    learner. `len`, `env_steps`, `agent_steps` and `slice` are what
    `LearnerGroup.update(episodes=…)` and its sharding over learners ask of an episode."""

    def __init__(self, columns: dict[str, np.ndarray], env_steps: int) -> None:
        self.columns = columns
        self._env_steps = env_steps
        self._agent_steps = len(next(iter(columns.values())))

    def __len__(self) -> int:
        return self._agent_steps

    def env_steps(self) -> int:
        """Return the number of steps of whole games."""
        return self._env_steps

    def agent_steps(self) -> int:
        """Return the number of decisions, which is the length of the columns."""
        return self._agent_steps

    def slice(self, part: builtins.slice, **_: Any) -> Fragment:
        """Return the entries of `part`, as views, with a proportional share of the env steps."""
        columns = {name: column[part] for name, column in self.columns.items()}
        length = len(range(*part.indices(len(self))))
        return Fragment(columns, round(self._env_steps * length / max(1, len(self))))

    def split(self, parts: int) -> list[Fragment]:
        """Return `parts` fragments of about equally many entries, as views."""
        edges = [len(self) * k // parts for k in range(parts + 1)]
        return [
            self.slice(builtins.slice(first, last)) for first, last in itertools.pairwise(edges)
        ]

    def __getitem__(self, part: builtins.slice) -> Fragment:
        return self.slice(part)
