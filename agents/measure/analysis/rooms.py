"""Counts the cells that a snake reaches first after a move, for sentences such as "led into 14
cells for a body of 21".
"""

from __future__ import annotations

from typing import NamedTuple

from agents.measure.analysis.snake_game import Position, after
from agents.search.evaluation.fill import divide
from agents.search.evaluation.territory import new_territory, survey
from agents.search.make_unmake import search_rules
from envs.battlesnake.state import ALIVE


class Room(NamedTuple):
    """What a snake has after a move."""

    cells: int
    """Cells that it reaches before the others, its head's included, bodies that move on by then
    counted as free.
    """
    length: int
    """Its length."""


def room_after(position: Position, move: int) -> Room | None:
    """Return the snake's room if it had played `move` and the others what they played; None if it
    would have died.
    """
    state, slot = after(position, move)
    if state.arrays.cause[0, slot] != ALIVE:
        return None
    territory = new_territory(state)
    rules = search_rules(state.rules)
    survey(state.arrays, rules, territory)
    divide(state.arrays, rules, territory, slot)
    return Room(int(territory.area[slot]), int(state.arrays.length[0, slot]))
