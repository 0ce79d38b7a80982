"""An agent that tells what it thinks, always the same on the same turn, and fails on one turn."""

from __future__ import annotations

import numpy as np

import agents
from agents.agent import Agent, Decision

AGAINST_TURN = 3
FAILING_TURN = 5
PLAYED_SHARE = 0.7
OTHER_SHARE = 0.1


class Thinker(Agent):
    """Plays as flood does. On `AGAINST_TURN` it thinks another move likelier, on `FAILING_TURN` it
    raises.
    """

    name = "thinker"

    def __init__(self) -> None:
        self._flood = agents.make("flood")

    def act_batch(self, state, boards, slots):
        return self._flood.act_batch(state, boards, slots)

    def act(self, state, you, deadline=None):
        turn = int(state.arrays.turn[0])
        if turn == FAILING_TURN:
            raise RuntimeError("a bug")
        move = self._flood.act(state, you).move
        shares = np.full(4, OTHER_SHARE, np.float32)
        shares[(move + 1) % 4 if turn == AGAINST_TURN else move] = PLAYED_SHARE
        return Decision(move, shares, 0.25, {"depth": 4, "values": [1.5, -0.5, 0.0, 20.0]})
