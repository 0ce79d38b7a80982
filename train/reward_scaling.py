"""Rewards in units of the spread of returns, so that one set of settings fits worlds that pay in different coin."""

from __future__ import annotations

from typing import Any

import numpy as np

_LIMIT = 10.0
_EPSILON = 1e-8


class RewardScaler:
    """Divides rewards by the running standard deviation of the discounted return, then clips them to ±10.

    As Engstrom et al. 2020 (arXiv 2005.12729) found it in the reference implementation of PPO, and CleanRL keeps it: each
    row's return is R ← gamma R + r, zero after an ending; its variance is taken over all rows and steps so far (Chan et al.
    1979). The mean isn't subtracted: that would change which behaviour is best.
    """

    def __init__(self, num_rows: int, gamma: float) -> None:
        self._gamma = gamma
        self._returns = np.zeros(num_rows)
        self._count, self._mean, self._squares = 0.0, 0.0, 0.0

    def scale(self, rewards: np.ndarray, rows: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """Scaled `rewards` float32 (n,) of the rows (n,) that acted in one step; `ended` bool (n,)."""
        returns = self._gamma * self._returns[rows] + rewards
        self._returns[rows] = np.where(ended, 0.0, returns)
        self._take_in(returns)
        scaled = rewards / np.sqrt(self.variance + _EPSILON)
        return np.clip(scaled, -_LIMIT, _LIMIT).astype(np.float32)

    @property
    def variance(self) -> float:
        """Of all returns so far; 1 before there are any two."""
        return self._squares / self._count if self._count > 1 else 1.0

    def _take_in(self, returns: np.ndarray) -> None:
        count = len(returns)
        if count == 0:
            return
        mean, total = float(returns.mean()), self._count + count
        apart = mean - self._mean
        self._squares += float(((returns - mean) ** 2).sum()) + apart**2 * self._count * count / total
        self._mean += apart * count / total
        self._count = total

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint needs; the returns under way are not part of it, since restored worlds start anew."""
        return {"count": self._count, "mean": self._mean, "squares": self._squares}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state`."""
        self._count, self._mean, self._squares = state["count"], state["mean"], state["squares"]
