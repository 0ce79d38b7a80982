"""Agents that behave badly."""

from __future__ import annotations

import threading

import numpy as np

from agents.agent import Agent, Decision


class Raises(Agent):
    name = "raises"

    def act_batch(self, state, boards, slots):
        raise RuntimeError("a bug")


class Hangs(Agent):
    """Answers when the test lets it."""

    name = "hangs"

    def __init__(self):
        self.release = threading.Event()

    def act_batch(self, state, boards, slots):
        self.release.wait(30)
        return np.zeros(len(boards), np.int8)


class Nonsense(Agent):
    name = "nonsense"

    def act_batch(self, state, boards, slots):
        return np.full(len(boards), 7, np.int8)

    def act(self, state, you, deadline=None):
        return Decision(7)
