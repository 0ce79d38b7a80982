"""The data that imitation learns from: the teacher's answers, and the returns of the games in which
they were given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_DEMONSTRATION = -1


class DemonstrationBatch(NamedTuple):
    """Demonstrations: observations, and what the teacher would have done."""

    observations: np.ndarray
    """(B, …)."""
    masks: np.ndarray
    """The actions that were allowed, bool (B, A)."""
    shares: np.ndarray
    """The probability that each action should have, float32 (B, A); 1 where only one is known."""
    values: np.ndarray
    """What the teacher thinks of the position, float32 (B,), -1..1; NaN where it doesn't say."""
    returns: np.ndarray
    """The discounted rewards that followed, float32 (B,); NaN where they aren't known."""

    @property
    def actions(self) -> np.ndarray:
        """Return the actions that should be likeliest, int64 (B,)."""
        return actions_of(self.shares)


def actions_of(shares: np.ndarray) -> np.ndarray:
    """Return the actions with the largest shares, int64 (B,), of shares (B, A)."""
    return shares.argmax(axis=1)


class Demonstrations:
    """The last `capacity` demonstrations, drawn with equal probability.

    They are numbered from 0 in the order in which they came.
    """

    def __init__(self, capacity: int, observation: np.ndarray, num_actions: int) -> None:
        self._columns = DemonstrationBatch(
            np.empty((capacity, *observation.shape), observation.dtype),
            np.empty((capacity, num_actions), np.bool_),
            np.empty((capacity, num_actions), np.float32),
            np.empty(capacity, np.float32),
            np.empty(capacity, np.float32),
        )
        self._capacity = capacity
        self.added = 0

    def __len__(self) -> int:
        return min(self.added, self._capacity)

    def add(
        self, observations: np.ndarray, masks: np.ndarray, shares: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Store these in place of the oldest ones, without returns yet. Returns their numbers,
        int64 (n,).
        """
        numbers = np.arange(self.added, self.added + len(shares))
        returns = np.full(len(shares), np.nan, np.float32)
        new_columns = (observations, masks, shares, values, returns)
        for column, new_column in zip(self._columns, new_columns, strict=True):
            column[numbers % self._capacity] = new_column
        self.added += len(shares)
        return numbers

    def tell_returns(self, numbers: np.ndarray, returns: np.ndarray) -> None:
        """Store the returns of demonstrations, given by their numbers. Overwritten demonstrations
        are skipped.
        """
        is_stored = numbers >= self.added - self._capacity
        self._columns.returns[numbers[is_stored] % self._capacity] = returns[is_stored]

    def sample(self, size: int, rng: np.random.Generator) -> DemonstrationBatch:
        """Draw `size` demonstrations, with replacement."""
        places = rng.integers(len(self), size=size)
        return DemonstrationBatch(*(column[places] for column in self._columns))


class Episodes:
    """The running episode of each row: rewards, and the demonstrations among its steps."""

    def __init__(self, num_rows: int, gamma: float) -> None:
        self._gamma = gamma
        self._steps: list[list[tuple[int, float]]] = [[] for _ in range(num_rows)]

    def add(self, rows: np.ndarray, numbers: np.ndarray, rewards: np.ndarray) -> None:
        """Add a step of `rows` (n,): the number of its demonstration or `NO_DEMONSTRATION`, and its
        reward.
        """
        for row, number, reward in zip(
            rows.tolist(), numbers.tolist(), rewards.tolist(), strict=True
        ):
            self._steps[row].append((number, reward))

    def end(self, row: int, *, has_returns: bool) -> tuple[np.ndarray, np.ndarray]:
        """End the row's episode. Returns the numbers, int64, and discounted returns, float32, of
        its demonstrations.

        Without `has_returns`, as for an episode that was cut off, both arrays are empty.
        """
        steps = self._steps[row]
        self._steps[row] = []
        if not has_returns:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        numbers = []
        returns = []
        following = 0.0
        for number, reward in reversed(steps):
            following = reward + self._gamma * following
            if number != NO_DEMONSTRATION:
                numbers.append(number)
                returns.append(following)
        return np.array(numbers, np.int64), np.array(returns, np.float32)
