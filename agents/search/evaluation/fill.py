"""Finds which snake reaches each cell first: a Voronoi fill from all heads at once, with tails that
move on.
"""

from __future__ import annotations

from agents.search.evaluation.fill_rows import divide_rows
from agents.search.evaluation.fill_words import divide_words
from agents.search.evaluation.territory import Territory
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards


@kernel
def divide(s: Boards, r: Rules, f: Territory, viewer: int) -> None:
    """Fill board 0, and write `area`, `clean_area` and `food_distance` of every living snake.

    On move k a snake gets a cell beside its region that nobody has reached before, if the body
    entries there have left by then; it is assumed that nobody eats. If several snakes reach a cell
    on the same move, the longest gets it; among equals, `viewer` is served last."""
    if f.columns[0, 0] and not r.wrapped:
        divide_words(s, r, f, viewer)
    else:
        divide_rows(s, r, f, viewer)
