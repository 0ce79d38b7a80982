"""Maps whose hazards spread over the board: spiral, scatter, growing and expanding boxes, expanding
scatter.

Nothing is remembered from turn to turn: each turn works out from the game's key what all turns
before must have done. So a map can continue from any board. In this file `turn` is the number of
the resulting board, by which the schedules count.

hz_grow_box needs sides of 4 or more and hz_expand_box a width of 4 or more, because the official
program has no first cell to choose otherwise. The official hz_scatter crashes when all cells are
used up; here nothing more happens. If a board is wider than high, the first cell may lie off the
board; it is then dropped."""

from __future__ import annotations

import numpy as np

from envs.battlesnake import rng
from envs.battlesnake.jit import allocating_kernel, kernel
from envs.battlesnake.maps.standard import cell_at
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, add_hazard

_SPIRAL_PERIOD = 3
_SCATTER_PERIOD = 2
_GROW_PERIOD = 12
_EXPAND_PERIOD = 20


@kernel
def _add_at(s: Boards, b: int, r: Rules, x: int, y: int) -> None:
    """One hazard on a point if it is on the board."""
    if 0 <= x < r.width and 0 <= y < r.height:
        add_hazard(s, b, cell_at(r, x, y), 1)


@kernel
def _draw_once(s: Boards, b: int, index: int, low: int, high: int) -> int:
    """An integer in low..high that is the same in every turn of a game."""
    return low + rng.below(s.key[b], 0, rng.MAP_HAZARDS, index, high - low + 1)


@kernel
def _is_full(s: Boards, b: int, r: Rules) -> bool:
    """As many hazard layers as cells: what stops the growing maps."""
    return s.num_hazards[b] == r.width * r.height


@kernel
def update_spiral(s: Boards, b: int, r: Rules) -> None:
    """Every 3 turns, add the next cell of a clockwise spiral around a cell in the middle. A cell
    off the board adds nothing.
    """
    turn = s.turn[b] + 1
    if turn % _SPIRAL_PERIOD:
        return
    margin_x = 3 * r.width // 10
    margin_y = 3 * r.height // 10
    x = _draw_once(s, b, 0, margin_x, r.width - 1 - margin_x)
    y = _draw_once(s, b, 1, margin_y, r.height - 1 - margin_y)
    step = turn // _SPIRAL_PERIOD - 1
    if step == 0:
        _add_at(s, b, r, x, y)
        return
    last_ring = max(x, y, r.width - x, r.height - y)
    ring = 1
    while step > 8 * ring:
        step -= 8 * ring
        ring += 1
    if ring > last_ring:
        return
    side = 2 * ring
    if step <= side:
        _add_at(s, b, r, x - ring + step, y + ring)
    elif step <= 2 * side:
        _add_at(s, b, r, x + ring, y + ring - (step - side))
    elif step <= 3 * side:
        _add_at(s, b, r, x + ring - (step - 2 * side), y - ring)
    else:
        _add_at(s, b, r, x - ring, y - ring + (step - 3 * side))


@allocating_kernel
def update_scatter(s: Boards, b: int, r: Rules) -> None:
    """Every 2 turns, add the next cell in a random order of all cells."""
    turn = s.turn[b] + 1
    area = r.width * r.height
    if turn % _SCATTER_PERIOD or turn // _SCATTER_PERIOD > area:
        return
    order = np.arange(area)
    for n in range(turn // _SCATTER_PERIOD):
        other = n + rng.below(s.key[b], 0, rng.MAP_HAZARDS, n, area - n)
        order[n], order[other] = order[other], order[n]
    k = order[turn // _SCATTER_PERIOD - 1]
    add_hazard(s, b, cell_at(r, k % r.width, k // r.width), 1)


@kernel
def _free_side(s: Boards, b: int, index: int, *free: bool) -> int:
    """Return one of the four sides that are free, drawn evenly; -1 if none is."""
    options = 0
    drawn_side = -1
    for side in range(4):
        if free[side]:
            # The n-th option replaces the one before with chance 1/n, so all are equally likely.
            options += 1
            if rng.below(s.key[b], 0, rng.MAP_HAZARDS, 4 * index + side, options) == 0:
                drawn_side = side
    return drawn_side


@kernel
def update_grow_box(s: Boards, b: int, r: Rules) -> None:
    """Every 12 turns, move one side of a box out by one line: a random one of those that are not at
    the edge yet.
    """
    turn = s.turn[b] + 1
    if turn % _GROW_PERIOD != 1 or _is_full(s, b, r):
        return
    left = right = _draw_once(s, b, 0, 2, r.width - 2)
    bottom = top = _draw_once(s, b, 1, 2, r.height - 2)
    from_x = left
    to_x = right
    from_y = bottom
    to_y = top
    for n in range(turn // _GROW_PERIOD):
        side = _free_side(
            s, b, 2 + n, left > 0, top < r.height - 1, right < r.width - 1, bottom > 0
        )
        from_x = left
        to_x = right
        from_y = bottom
        to_y = top
        if side == 0:
            left -= 1
            from_x = to_x = left
        elif side == 1:
            top += 1
            from_y = to_y = top
        elif side == 2:
            right += 1
            from_x = to_x = right
        elif side == 3:
            bottom -= 1
            from_y = to_y = bottom
        else:
            return
    for y in range(from_y, to_y + 1):
        for x in range(from_x, to_x + 1):
            add_hazard(s, b, cell_at(r, x, y), 1)


@kernel
def _ring(r: Rules, x: int, y: int, distance: int, out: np.ndarray) -> int:
    """Write the cells on the board at a Chebyshev distance from a point into `out`; returns how
    many.
    """
    n = 0
    for cell_y in range(max(0, y - distance), min(r.height - 1, y + distance) + 1):
        # The top and bottom rows of a ring are whole; of the others only the two ends belong to it.
        stride = 1 if abs(cell_y - y) == distance else 2 * distance
        for cell_x in range(x - distance, x + distance + 1, max(1, stride)):
            if 0 <= cell_x < r.width:
                out[n] = cell_at(r, cell_x, cell_y)
                n += 1
    return n


@allocating_kernel
def update_expand_box(s: Boards, b: int, r: Rules) -> None:
    """Every 20 turns, add the next square ring around a cell. As in the official map, x and y are
    both drawn from the width.
    """
    turn = s.turn[b] + 1
    if turn % _EXPAND_PERIOD != 1 or _is_full(s, b, r):
        return
    x = _draw_once(s, b, 0, 2, r.width - 2)
    y = _draw_once(s, b, 1, 2, r.width - 2)
    distance = turn // _EXPAND_PERIOD
    if distance > max(x, y, r.width - x, r.height - y):
        return
    cells = np.empty(2 * (r.width + r.height), np.int64)
    for cell in cells[: _ring(r, x, y, distance, cells)]:
        add_hazard(s, b, cell, 1)


@allocating_kernel
def update_expand_scatter(s: Boards, b: int, r: Rules) -> None:
    """Every 2 turns, add one cell: first all cells of one ring around a cell in random order, then
    those of the next ring.
    """
    turn = s.turn[b] + 1
    if turn % _SCATTER_PERIOD != 1 or _is_full(s, b, r):
        return
    x = _draw_once(s, b, 0, 1, r.width - 1)
    y = _draw_once(s, b, 1, 1, r.width - 1)
    cells = np.empty(2 * (r.width + r.height), np.int64)
    nth = turn // _SCATTER_PERIOD
    for distance in range(r.width + r.height):
        n = _ring(r, x, y, distance, cells)
        size = n
        if distance == 0:
            size = 1  # The centre is a ring of its own, and takes its turn even off the board.
        if nth < size:
            if n:
                rng.shuffle(cells[:n], s.key[b], 0, rng.MAP_HAZARDS, 2 + 256 * distance)
                add_hazard(s, b, cells[nth], 1)
            return
        nth -= size
