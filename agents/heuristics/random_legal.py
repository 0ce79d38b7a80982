"""Random-legal: the floor that everything must beat."""

from __future__ import annotations

import numpy as np

from agents.agent import Agent
from agents.sampling import choose, uniforms
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import State


class RandomLegal(Agent):
    """Plays any move that is not certain death, each with the same chance; any of the four if all are.

    The draw is a function of (`seed`, the game's key, its turn, the slot): the same board gets the same answer.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.name, self.seed = "random", seed

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        safe = safe_moves(state, boards, slots)
        return choose(safe, uniforms(state, boards, slots, seed=self.seed)).astype(np.int8)
