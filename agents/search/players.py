"""Chooses the snakes that a search sees, and those whose moves it tries: mine and the nearest
others.
"""

from __future__ import annotations

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import ALIVE, Boards, State, head_cell, is_alive


def among_the_living(state: State, board: int, you: int) -> tuple[State, int]:
    """Return a copy of one board without the slots of dead snakes, and my slot there. So the last
    two snakes of a larger game play a duel. If I am dead myself, all slots are kept.
    """
    cause = state.arrays.cause[board]
    if cause[you] != ALIVE:
        return state.select(np.array([board])), int(you)
    return state.select_living(board), int((cause[:you] == ALIVE).sum())


@kernel
def choose_players(
    s: Boards, r: Rules, players: np.ndarray, me: int, max_rivals: int, near: int
) -> int:
    """Write `me` into `players`, then at most `max_rivals` others, the nearest first. Return how
    many were written.

    The first other may be at any distance; the rest must be within `near` moves.
    """
    players[0] = me
    count = 1
    for _ in range(max_rivals):
        nearest = -1
        distance = 1 << 20
        for i in range(s.cause.shape[1]):
            if (
                is_alive(s, 0, i)
                and not is_player(players, count, i)
                and head_distance(s, r, me, i) < distance
            ):
                nearest = i
                distance = head_distance(s, r, me, i)
        if nearest >= 0 and (distance <= near or count == 1):
            players[count] = nearest
            count += 1
    return count


@kernel
def is_player(players: np.ndarray, count: int, i: int) -> bool:
    """Return whether the snake is among the first `count` of `players`."""
    for p in range(count):
        if players[p] == i:
            return True
    return False


@kernel
def head_distance(s: Boards, r: Rules, i: int, j: int) -> int:
    """Return the number of moves between two heads on an empty board."""
    width = r.width + 2
    a = head_cell(s, 0, i)
    b = head_cell(s, 0, j)
    dx = abs(a % width - b % width)
    dy = abs(a // width - b // width)
    if r.wrapped:
        dx = min(dx, r.width - dx)
        dy = min(dy, r.height - dy)
    return dx + dy
