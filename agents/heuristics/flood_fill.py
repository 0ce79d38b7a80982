"""Flood-fill keeps room to live, avoids cells that stronger heads can enter, and eats. It is the
hand-written snake to beat.
"""

from __future__ import annotations

import numpy as np

from agents.agent import Agent, Decision
from agents.heuristics.flood_kernels import AMPLE, HUNGRY, flood_moves
from envs.battlesnake.state import State


class FloodFill(Agent):
    """Fills the board from each move that is not certain death, and plays the best move by these
    rules, in this order:

    1. A move is *roomy* if the fill finds at least as many cells as the snake is long. Its *rivals*
       are the other snakes that are at least as long and whose heads can enter the same cell now.
       Roomy moves come before cramped ones. Among these, moves with fewer rivals come first.
    2. Then come moves from which a cell without hazard is nearer (0 moves away if the move itself
       ends on one).
    3. Then come moves from which food is nearer, if the snake is hungry (health below `hungry`), or
       if there are no rivals and the area is ample (at least `ample` times its length).
    4. Then come moves with a larger area. Among equals the order is up, down, left, right. For
       cramped moves the area comes before 2 and 3.

    The fill advances one cell per move. It enters a cell on move k if the body entries there will
    have left by then, and if hunger and hazards on the way leave the snake alive; food on the way
    heals. It assumes that all tails move on and that nobody eats, except the snake itself on its
    first move; in constrictor games bodies never leave. On a wrapped board it crosses the edges.
    """

    name = "flood"

    def __init__(self, *, hungry: int = HUNGRY, ample: float = AMPLE) -> None:
        self.hungry = hungry
        self.ample = ample

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        return flood_moves(
            state, boards, slots, np.ones(4, np.bool_), hungry=self.hungry, ample=self.ample
        )

    def act_among(
        self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None
    ) -> Decision:
        board = np.zeros(1, np.int64)
        slot = np.array([you])
        return Decision(
            int(flood_moves(state, board, slot, allowed, hungry=self.hungry, ample=self.ample)[0])
        )
