"""Greedy-food: runs for the nearest food and looks no further than its next move."""

from __future__ import annotations

import numpy as np

from agents.agent import Agent
from envs.battlesnake.kernels import kernel
from envs.battlesnake.safety import write_safe_moves
from envs.battlesnake.state import State, head_cell, step_offset

_NO_FOOD = 1 << 30


class GreedyFood(Agent):
    """Of the moves that are not certain death, plays the one that ends nearest to any food.

    Nearest by Manhattan distance, across the edges on a wrapped board, whatever lies between. Among equals the order is up,
    down, left, right; so too if there is no food. It avoids nothing but certain death: not dead ends, not other heads, not
    hazards that leave it alive.
    """

    name = "greedy"

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        out = np.empty(len(boards), np.int8)
        safe = np.empty((1, 4), np.bool_)
        _greedy_rows(state.arrays, state.rules, np.asarray(boards, np.int64), np.asarray(slots, np.int64), safe, out)
        return out


@kernel
def _greedy_rows(s, r, boards, slots, safe, out):
    for n in range(len(boards)):
        b, i = boards[n], slots[n]
        write_safe_moves(s, b, i, r, safe, 0)
        nearest, best = _NO_FOOD + 1, 0
        for move in range(4):
            if safe[0, move]:
                distance = _distance_to_food(s, b, r, s.opposite[head_cell(s, b, i) + step_offset(r.width, move)])
                if distance < nearest:
                    nearest, best = distance, move
        out[n] = best


@kernel
def _distance_to_food(s, b, r, cell):
    """Manhattan distance from a cell of the board to the nearest food on board b."""
    nearest = _NO_FOOD
    left = s.num_food[b]
    row, column = cell // (r.width + 2), cell % (r.width + 2)
    for y in range(1, r.height + 1):
        if left <= 0:
            break
        for x in range(1, r.width + 1):
            food = s.food[b, y * (r.width + 2) + x]
            if food:
                left -= food
                dx, dy = abs(x - column), abs(y - row)
                if r.wrapped:
                    dx, dy = min(dx, r.width - dx), min(dy, r.height - dy)
                nearest = min(nearest, dx + dy)
    return nearest
