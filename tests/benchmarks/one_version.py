"""One version's alphabeta in a process of its own, for `tests.benchmarks.yardstick`.

It imports whatever version of the packages `agents` and `envs` lies in its working directory. So it
may import only what commit 9be3ed9 has of them, and nothing else of this repository. It reads
questions from stdin and writes the answers to stdout, both pickled: (nodes, size of the board,
settings, arrays, slot), and (move, seconds of processor time)."""

from __future__ import annotations

import pickle
import sys
import time
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np

import agents
from agents.agent import Agent
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import Boards, State


@lru_cache
def _agent(nodes: int) -> Agent:
    return agents.make("alphabeta", nodes=nodes)


def _state(
    width: int, height: int, settings: dict[str, Any], arrays: dict[str, np.ndarray]
) -> State:
    num_snakes = arrays["cause"].shape[1]
    state = State(
        1, width=width, height=height, num_snakes=num_snakes, settings=Settings(**settings)
    )
    state.arrays = Boards(**arrays)
    return state


def answer_questions(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the questions end."""
    while True:
        try:
            nodes, width, height, settings, arrays, you = pickle.load(questions)
        except EOFError:
            return
        state = _state(width, height, settings, arrays)
        agent = _agent(nodes)
        began = time.thread_time()
        move = agent.act(state, you).move
        pickle.dump((move, time.thread_time() - began), answers)
        answers.flush()


if __name__ == "__main__":
    answer_questions(sys.stdin.buffer, sys.stdout.buffer)
