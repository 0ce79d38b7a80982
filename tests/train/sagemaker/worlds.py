"""A world that leaves a note of which machine it is played on. Importing this module registers
it.
"""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np

import envs
from tests.train.small_worlds import IdentityWorld

_PLAYED = 5


class NotedWorld(IdentityWorld):
    """After some steps, of which a mere check of the experiment makes one, a file in `notes` bears
    the machine's name.
    """

    def __init__(self, *, notes: str, num_games: int = 32) -> None:
        super().__init__(num_games=num_games)
        self._notes = Path(notes)
        self._steps = 0

    def advance(self, actions: np.ndarray) -> None:
        super().advance(actions)
        self._steps += 1
        if self._steps == _PLAYED:
            (self._notes / socket.gethostname()).touch()


envs.register("noted", NotedWorld)
