"""Scales rewards by the spread of returns, so that the same settings fit worlds with large and
small rewards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_LIMIT = 10.0
_EPSILON = 1e-8


class RewardScaler:
    """Divides rewards by the running standard deviation of the discounted return, then clips them
    to ±10.

    Each row's return is R ← gamma R + r, and zero after an ending. Its variance is taken over all
    rows and steps so far (Chan et al. 1979). The mean isn't subtracted, because that would change
    which behaviour is best. The reference implementation of PPO does this (Engstrom et al. 2020,
    arXiv 2005.12729), and CleanRL does, too."""

    def __init__(self, num_rows: int, gamma: float) -> None:
        self._gamma = gamma
        self._returns = np.zeros(num_rows)
        self._count = 0.0
        self._mean = 0.0
        self._squares = 0.0

    def scale(self, rewards: np.ndarray, rows: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """Return scaled `rewards`, float32 (n,), of the rows (n,) that acted in one step.

        `ended`, bool (n,): their episode ended.
        """
        returns = self._gamma * self._returns[rows] + rewards
        self._returns[rows] = np.where(ended, 0.0, returns)
        self._take_in(returns)
        scaled = rewards / np.sqrt(self.variance + _EPSILON)
        return np.clip(scaled, -_LIMIT, _LIMIT).astype(np.float32)

    @property
    def variance(self) -> float:
        """The variance of all returns so far; 1 as long as there are fewer than two."""
        return self._squares / self._count if self._count > 1 else 1.0

    def _take_in(self, returns: np.ndarray) -> None:
        count = len(returns)
        if count == 0:
            return
        mean = float(returns.mean())
        total = self._count + count
        apart = mean - self._mean
        self._squares += (
            float(((returns - mean) ** 2).sum()) + apart**2 * self._count * count / total
        )
        self._mean += apart * count / total
        self._count = total

    def get_state(self) -> dict[str, Any]:
        """Return what a checkpoint needs.

        Returns of unfinished episodes are left out, because restored worlds start new games.
        """
        return {"count": self._count, "mean": self._mean, "squares": self._squares}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from what `get_state` returned."""
        self._count = state["count"]
        self._mean = state["mean"]
        self._squares = state["squares"]
