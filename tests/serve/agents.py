"""Agents that behave badly."""

from __future__ import annotations

import threading

import numpy as np

from agents.agent import Agent


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


class Exits(Raises):
    name = "exits"

    def act_batch(self, state, boards, slots):
        raise SystemExit(3)


class Nonsense(Raises):
    """Gives an answer that is no decision."""

    name = "nonsense"

    def __init__(self, answer):
        self.answer = answer

    def act(self, state, you, deadline=None):
        return self.answer
