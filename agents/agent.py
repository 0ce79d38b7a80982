"""What anything that plays Battlesnake offers: one move for one board, or many moves for many boards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envs.battlesnake.state import State


@dataclass(frozen=True)
class Decision:
    """A move and, where the agent knows them, the reasons for it."""

    move: int
    """0 up, 1 down, 2 left, 3 right."""
    probabilities: np.ndarray | None = None
    """float32 (4,): how likely the agent thinks each move, in that order; they sum to 1."""
    value: float | None = None
    """What the agent expects of the rest of the game, in units of the reward that it was trained on."""
    note: dict[str, Any] = field(default_factory=dict)
    """Whatever else it has to tell, JSON-able."""


class Agent(ABC):
    """Something that chooses moves. A subclass sets `name` and answers `act_batch`; a slow one also overrides `act`.

    Agents keep nothing between calls: an answer depends on the board and on how the agent was made, so one agent may play any
    number of snakes in any number of games, from several threads.
    """

    name: str

    @abstractmethod
    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Moves int8 (n,), 0..3, for the snakes in `slots` of `boards` (integers (n,)) of `state`, which stays untouched."""

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        """A move for the snake in slot `you` of board 0.

        `deadline` is the `time.monotonic()` at which the answer is due; agents that take a fixed time ignore it.
        """
        return Decision(int(self.act_batch(state, np.zeros(1, np.int64), np.array([you]))[0]))
