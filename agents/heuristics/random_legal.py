"""Random-legal plays at random. It is the weakest baseline, which everything must beat."""

from __future__ import annotations

import numpy as np

from agents.agent import Agent, Decision
from agents.sampling import choose, uniforms
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import State


class RandomLegal(Agent):
    """Plays a uniformly random move that is not certain death; if all four are, any of them.

    The draw is a function of (`seed`, the game's key, its turn, the slot), so the same board gets
    the same answer."""

    def __init__(self, *, seed: int = 0) -> None:
        self.name = "random"
        self.seed = seed

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        return self._moves(state, boards, slots, np.ones(4, np.bool_))

    def act_among(
        self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None
    ) -> Decision:
        return Decision(int(self._moves(state, np.zeros(1, np.int64), np.array([you]), allowed)[0]))

    def _moves(
        self, state: State, boards: np.ndarray, slots: np.ndarray, allowed: np.ndarray
    ) -> np.ndarray:
        open_to = safe_moves(state, boards, slots) & allowed
        open_to = np.where(open_to.any(axis=1, keepdims=True), open_to, allowed)
        return choose(open_to, uniforms(state, boards, slots, seed=self.seed)).astype(np.int8)
