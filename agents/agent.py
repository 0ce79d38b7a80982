"""The interface of everything that plays Battlesnake: one move for one board, or many moves for
many boards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from envs.battlesnake.state import State


@dataclass(frozen=True)
class Decision:
    """A move and, where the agent knows them, the reasons for it."""

    move: int
    """0 up, 1 down, 2 left, 3 right."""
    probabilities: np.ndarray | None = None
    """float32 (4,): how likely the agent thinks each move, in that order; they sum to 1."""
    value: float | None = None
    """The return that the agent expects of the rest of the game, in units of the reward that it was
    trained on.
    """
    note: dict[str, Any] = field(default_factory=dict)
    """Anything else that the agent says about its decision, JSON-able."""


class Agent(ABC):
    """Something that chooses moves. A subclass sets `name` and answers `act_batch`; a slow one also
    overrides `act`.

    Agents keep nothing between calls: an answer depends only on the board and on how the agent was
    made. So one agent may play any number of snakes in any number of games, from several threads.
    """

    name: str

    @abstractmethod
    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Return moves int8 (n,), 0..3, for the snakes in `slots` (n,) of `boards` (n,) of `state`,
        which isn't changed.
        """

    def act(self, state: State, you: int, deadline: float | None = None) -> Decision:
        """Return a move for the snake in slot `you` of board 0.

        `deadline` is the `time.monotonic()` at which the answer is due. Agents that take a fixed
        time ignore it."""
        return Decision(int(self.act_batch(state, np.zeros(1, np.int64), np.array([you]))[0]))

    def act_among(
        self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None
    ) -> Decision:
        """Return the best move among those that `allowed`, bool (4,) with at least one True,
        permits. Otherwise it works like `act`.

        By default it is the move of `act`, if that is allowed. If not, it is the likeliest of the
        allowed moves, or without probabilities the one that the flood-fill snake chooses. Agents
        that can choose among fewer moves by themselves override this."""
        decision = self.act(state, you, deadline)
        if allowed[decision.move]:
            return decision
        if decision.probabilities is not None and decision.probabilities[allowed].any():
            return replace(
                decision, move=int(np.where(allowed, decision.probabilities, -1.0).argmax())
            )
        # The room of the heuristics imports this module.
        from agents.heuristics.flood_kernels import flood_moves

        move = flood_moves(state, np.zeros(1, np.int64), np.array([you]), allowed)[0]
        return replace(decision, move=int(move), probabilities=None)

    def evaluation_in_words(self, state: State | None = None) -> str | None:
        """Return which evaluation the agent uses on board 0 of `state`, and why; without a state,
        for which games it uses which.

        It is None for an agent that can't have a learned evaluation.
        """
        return None
