"""Snakes whose games can be worked out by hand."""

from __future__ import annotations

import numpy as np

from agents.agent import Agent
from envs.battlesnake.state import UP


class AlwaysUp(Agent):
    """Runs into the wall above."""

    name = "up"

    def act_batch(self, state, boards, slots):
        return np.full(len(boards), UP, np.int8)
