"""Which snake reaches each cell first: the arrays of a Voronoi fill, and what doesn't change during
a search.

`fill.divide` does the fill, from all heads at once, with tails that move on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake.jit import kernel
from envs.battlesnake.reach.bitboards import make_bitboards
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import FULL_HEALTH, Boards, State, is_alive

_ROWS = 32 + 2
NO_FOOD = 1000
REACHED_AFTER = (1, 2, 4, 8, 14)
"""The moves after which a learned evaluation counts the cells that a snake has reached."""


class Territory(NamedTuple):
    """The fill's scratch arrays and its results, for S slots, R rows of bits and C padded cells.

    Boards of up to 128 cells that aren't wrapped are filled on words (`fill_words`), others on rows
    (`fill_rows`). K is `len(REACHED_AFTER)`, or 0 without stages."""

    row: np.ndarray
    """int16 (C,): the cell's row."""
    bit: np.ndarray
    """uint32 (C,): the cell's bit in its row."""
    enterable: np.ndarray
    """uint32 (R,): the cells of the board whose hazards don't kill a snake of full health."""
    clean: np.ndarray
    """uint32 (R,): the cells of the board without a harmful hazard."""
    food_cells: np.ndarray
    """int16 (C,): where food lay at the root of the search."""
    num_food_cells: np.ndarray
    """int64 (1,): how many of `food_cells` there are."""
    food: np.ndarray
    """uint32 (R,): where food lies."""
    open: np.ndarray
    """uint32 (R,): the cells that a region may still grow into."""
    regions: np.ndarray
    """uint32 (2, S, R): the regions in two generations, before and after a move."""
    word: np.ndarray
    """uint64 (C, 2): the cell's bit in the two words of `fill_words`; all are 0 on larger boards.
    """
    columns: np.ndarray
    """uint64 (2, 2): all cells but the leftmost column, and all but the rightmost one."""
    enterable_words: np.ndarray
    """uint64 (2,): `enterable` in two words."""
    clean_words: np.ndarray
    """uint64 (2,): `clean` in two words."""
    words: np.ndarray
    """uint64 (S, 2): the regions in two words."""
    reached: np.ndarray
    """int64 (K, 2): the cells of a duel's regions after `REACHED_AFTER`, by `order`."""
    start_words: np.ndarray
    """uint64 (2,): the cells that no body covered before the last fill of a duel with stages."""
    food_words: np.ndarray
    """uint64 (2,): the food before that fill."""
    order: np.ndarray
    """int64 (S,): the living snakes in the order in which they are served."""
    area: np.ndarray
    """int64 (S,): the cells that a snake reaches first, its head's included."""
    clean_area: np.ndarray
    """int64 (S,): those of them without a harmful hazard."""
    food_distance: np.ndarray
    """int64 (S,): moves to the nearest food that a snake reaches first, or `NO_FOOD`."""
    steps: np.ndarray
    """int64 (1,): the most moves that the fill looks ahead."""


def new_territory(state: State, *, steps: int = 24, with_stages: bool = False) -> Territory:
    """Allocate the arrays for boards of this state's shape; a fill goes at most `steps` moves far.

    `with_stages` has `fill_words` note how a duel's regions grow, which a learned evaluation needs.
    """
    snakes = state.num_snakes
    cells = state.arrays.occupied.shape[1]
    rows, columns = np.divmod(np.arange(cells), state.width + 2)
    bitboards = make_bitboards(state.width, state.height)
    num_stages = 0
    if with_stages:
        num_stages = len(REACHED_AFTER)
    return Territory(
        row=rows.astype(np.int16),
        bit=(1 << columns).astype(np.uint32),
        enterable=np.zeros(_ROWS, np.uint32),
        clean=np.zeros(_ROWS, np.uint32),
        food_cells=np.zeros(cells, np.int16),
        num_food_cells=np.zeros(1, np.int64),
        food=np.zeros(_ROWS, np.uint32),
        open=np.zeros(_ROWS, np.uint32),
        regions=np.zeros((2, snakes, _ROWS), np.uint32),
        word=bitboards.of_cell,
        columns=bitboards.columns,
        enterable_words=np.zeros(2, np.uint64),
        clean_words=np.zeros(2, np.uint64),
        words=np.zeros((snakes, 2), np.uint64),
        reached=np.zeros((num_stages, 2), np.int64),
        start_words=np.zeros(2, np.uint64),
        food_words=np.zeros(2, np.uint64),
        order=np.zeros(snakes, np.int64),
        area=np.zeros(snakes, np.int64),
        clean_area=np.zeros(snakes, np.int64),
        food_distance=np.zeros(snakes, np.int64),
        steps=np.full(1, steps, np.int64),
    )


@kernel
def survey(s: Boards, r: Rules, f: Territory) -> None:
    """Note what doesn't change during a search on board 0: its edges, its hazards, and where there
    can be food.
    """
    f.enterable[:] = 0
    f.clean[:] = 0
    f.enterable_words[:] = 0
    f.clean_words[:] = 0
    f.regions[:] = 0
    f.num_food_cells[0] = 0
    for cell in range(s.food.shape[1]):
        if s.opposite[cell] != cell:
            continue
        damage = s.hazards[0, cell] * r.hazard_damage
        if damage < FULL_HEALTH - 1:
            f.enterable[f.row[cell]] |= f.bit[cell]
            f.enterable_words[0] |= f.word[cell, 0]
            f.enterable_words[1] |= f.word[cell, 1]
        if damage <= 0:
            f.clean[f.row[cell]] |= f.bit[cell]
            f.clean_words[0] |= f.word[cell, 0]
            f.clean_words[1] |= f.word[cell, 1]
        if s.food[0, cell]:
            f.food_cells[f.num_food_cells[0]] = cell
            f.num_food_cells[0] += 1


@kernel
def serve_longest_first(s: Boards, f: Territory, viewer: int) -> None:
    """Write the living snakes into `order`, the longest first; among equals `viewer` is the
    last.
    """
    placed = 0
    for i in range(s.cause.shape[1]):
        if is_alive(s, 0, i):
            place = placed
            while place > 0 and _comes_before(s, i, f.order[place - 1], viewer):
                f.order[place] = f.order[place - 1]
                place -= 1
            f.order[place] = i
            placed += 1


@kernel
def _comes_before(s: Boards, i: int, j: int, viewer: int) -> bool:
    """Return whether snake i is served before snake j."""
    if s.length[0, i] == s.length[0, j]:
        return j == viewer
    return s.length[0, i] > s.length[0, j]
