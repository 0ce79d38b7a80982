"""Greedy-food goes to the nearest food and looks no further than its next move."""

from __future__ import annotations

import numpy as np

from agents.agent import Agent, Decision
from envs.battlesnake.jit import kernel
from envs.battlesnake.safety import write_safe_moves
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, State, head_cell, step_offset

_NO_FOOD = 1 << 30


class GreedyFood(Agent):
    """Plays the move that ends nearest to any food, among those that are not certain death.

    Distance is Manhattan distance, across the edges on a wrapped board, whatever lies between.
    Among equal moves, and if there is no food, the order is up, down, left, right. It avoids only
    certain death: not dead ends, not other heads, not hazards that leave it alive."""

    name = "greedy"

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        return self._moves(state, boards, slots, np.ones(4, np.bool_))

    def act_among(
        self, state: State, you: int, allowed: np.ndarray, deadline: float | None = None
    ) -> Decision:
        return Decision(int(self._moves(state, np.zeros(1), np.array([you]), allowed)[0]))

    def _moves(
        self, state: State, boards: np.ndarray, slots: np.ndarray, allowed: np.ndarray
    ) -> np.ndarray:
        out = np.full(len(boards), allowed.argmax(), np.int8)
        safe = np.empty((1, 4), np.bool_)
        boards = np.asarray(boards, np.int64)
        slots = np.asarray(slots, np.int64)
        _greedy_rows(state.arrays, state.rules, boards, slots, allowed, safe, out)
        return out


@kernel
def _greedy_rows(
    s: Boards,
    r: Rules,
    boards: np.ndarray,
    slots: np.ndarray,
    allowed: np.ndarray,
    safe: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the best move of each snake into `out` (n,), which must hold an allowed move
    already."""
    for n in range(len(boards)):
        b = boards[n]
        i = slots[n]
        write_safe_moves(s, b, i, r, safe, 0)
        nearest = _NO_FOOD + 1
        best = out[n]
        for move in range(4):
            if allowed[move] and safe[0, move]:
                ahead = head_cell(s, b, i) + step_offset(r.width, move)
                distance = _distance_to_food(s, b, r, s.opposite[ahead])
                if distance < nearest:
                    nearest = distance
                    best = move
        out[n] = best


@kernel
def _distance_to_food(s: Boards, b: int, r: Rules, cell: int) -> int:
    """Return the Manhattan distance from a cell of the board to the nearest food on board b."""
    nearest = _NO_FOOD
    # The search ends when it has passed all food.
    remaining = s.num_food[b]
    row = cell // (r.width + 2)
    column = cell % (r.width + 2)
    for y in range(1, r.height + 1):
        if remaining <= 0:
            break
        for x in range(1, r.width + 1):
            food = s.food[b, y * (r.width + 2) + x]
            if food:
                remaining -= food
                dx = abs(x - column)
                dy = abs(y - row)
                if r.wrapped:
                    dx = min(dx, r.width - dx)
                    dy = min(dy, r.height - dy)
                nearest = min(nearest, dx + dy)
    return nearest
