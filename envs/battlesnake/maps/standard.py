"""The standard map: where snakes start, where the first food lies, and how food appears. Most other
maps build on it.
"""

from __future__ import annotations

import numpy as np

from envs.battlesnake import rng
from envs.battlesnake.jit import allocating_kernel, kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, add_food, add_snake, head_cell, is_alive, step_offset

START_LENGTH = 3

# What can go wrong in a set-up. `envs.battlesnake.maps` turns these into errors that name the map.
OK, NO_START_CELL, NO_FOOD_CELL, TOO_MANY_SNAKES, WRONG_SIZE = range(5)


@kernel
def cell_at(r: Rules, x: int, y: int) -> int:
    """Return the padded cell number of a point."""
    return (y + 1) * (r.width + 2) + x + 1


@kernel
def set_up_standard(s: Boards, b: int, r: Rules) -> int:
    """Place snakes on the standard start cells, then the standard first food. Returns a set-up
    code.
    """
    code = place_snakes(s, b, r)
    if code != OK:
        return code
    return place_first_food(s, b, r)


@kernel
def update_standard(s: Boards, b: int, r: Rules) -> None:
    """Add food up to the minimum.

    If there is enough, add one food with the given chance (a draw in 1..100 must lie below it).
    """
    refill_food(s, b, r, False)


@kernel
def refill_food(s: Boards, b: int, r: Rules, avoid_hazards: bool) -> None:
    """Add food as `update_standard` does. With `avoid_hazards` it never lies on hazards."""
    missing = r.minimum_food - s.num_food[b]
    if missing > 0:
        spawn_food(s, b, r, missing, avoid_hazards)
    elif r.food_spawn_chance > 0:
        if 1 + rng.below(s.key[b], s.turn[b], rng.SPAWN_FOOD, 0, 100) < r.food_spawn_chance:
            spawn_food(s, b, r, 1, avoid_hazards)


@kernel
def place_snakes(s: Boards, b: int, r: Rules) -> int:
    """Place the snakes: on corners and middles of sides, 9 to 16 snakes in quadrants, and on other
    boards on random cells.

    Returns a set-up code.
    """
    snakes = s.cause.shape[1]
    side = r.width
    square = r.width == r.height
    if square and side >= 7 and snakes <= 8:
        return _place_on_corners_and_middles(s, b, r)
    if square and side >= 11:
        return _place_in_mirrored_quadrants(s, b, r)
    if square and side < 7 and snakes > 8:
        return TOO_MANY_SNAKES
    return _place_on_even_cells(s, b, r)


@allocating_kernel
def _place_on_corners_and_middles(s: Boards, b: int, r: Rules) -> int:
    low = 1
    mid = (r.width - 1) // 2
    high = r.width - 2
    corners = np.array(
        [cell_at(r, low, low), cell_at(r, low, high), cell_at(r, high, low), cell_at(r, high, high)]
    )
    middles = np.array(
        [cell_at(r, low, mid), cell_at(r, mid, low), cell_at(r, mid, high), cell_at(r, high, mid)]
    )
    rng.shuffle(corners, s.key[b], 0, rng.START_CELLS, 0)
    rng.shuffle(middles, s.key[b], 0, rng.START_CELLS, 8)
    corners_first = rng.below(s.key[b], 0, rng.START_CELLS, 16, 2) == 0
    for i in range(s.cause.shape[1]):
        group = corners if corners_first == (i < 4) else middles
        add_snake(s, b, i, group[i % 4], START_LENGTH)
    return OK


@allocating_kernel
def _place_in_mirrored_quadrants(s: Boards, b: int, r: Rules) -> int:
    quarter = r.width // 2
    near = quarter // 3
    far = quarter - quarter // 3
    quadrants = np.empty((4, 4), np.int64)
    for q in range(4):
        for k in range(4):
            x = near if k < 2 else far
            y = near if k % 2 == 0 else far
            if q % 2:
                x = r.width - 1 - x
            if q >= 2:
                y = r.height - 1 - y
            quadrants[q, k] = cell_at(r, x, y)
    return place_in_quadrants(s, b, quadrants, 4)


@allocating_kernel
def place_in_quadrants(s: Boards, b: int, quadrants: np.ndarray, cells: int) -> int:
    """Deal the snakes to the quadrants in turn, beginning with a random one.

    Each row of `quadrants` (4, 4) has a quadrant's cells, of which only the first `cells` are used.
    Returns a set-up code.
    """
    for q in range(4):
        rng.shuffle(quadrants[q, :cells], s.key[b], 0, rng.START_CELLS, 32 * q)
    first = rng.below(s.key[b], 0, rng.START_CELLS, 128, 4)
    for i in range(s.cause.shape[1]):
        if i // 4 >= cells:
            return NO_START_CELL
        add_snake(s, b, i, quadrants[(first + i) % 4, i // 4], START_LENGTH)
    return OK


@allocating_kernel
def _place_on_even_cells(s: Boards, b: int, r: Rules) -> int:
    centre = cell_at(r, (r.width - 1) // 2, (r.height - 1) // 2)
    free = np.empty((r.width * r.height + 1) // 2, np.int64)
    n = 0
    for y in range(r.height):
        for x in range(r.width):
            if (x + y) % 2 == 0 and cell_at(r, x, y) != centre:
                free[n] = cell_at(r, x, y)
                n += 1
    if n < s.cause.shape[1]:
        return NO_START_CELL
    rng.shuffle(free[:n], s.key[b], 0, rng.START_CELLS, 0)
    for i in range(s.cause.shape[1]):
        add_snake(s, b, i, free[i], START_LENGTH)
    return OK


@kernel
def place_first_food(s: Boards, b: int, r: Rules) -> int:
    """Place one food diagonally outward from each snake, and one in the centre. On boards of odd
    shapes, place it at random.
    """
    snakes = s.cause.shape[1]
    if r.width != r.height or r.width < 7:
        spawn_food(s, b, r, snakes, False)
        return OK
    if snakes <= 4 or r.width * r.height >= 121:
        for i in range(snakes):
            cell = outward_diagonal(s, b, r, i, False)
            if cell < 0:
                return NO_FOOD_CELL
            add_food(s, b, cell)
    centre = cell_at(r, (r.width - 1) // 2, (r.height - 1) // 2)
    if s.occupied[b, centre]:
        return NO_FOOD_CELL
    add_food(s, b, centre)
    return OK


@kernel
def outward_diagonal(s: Boards, b: int, r: Rules, i: int, avoid: bool) -> int:
    """Return a random diagonal neighbour of the snake's head that has no food, lies farther from
    the centre, and isn't a corner.

    Farther means along at least one axis. With `avoid`, cells with snakes or hazards don't count
    either. Returns -1 if there is none."""
    stride = r.width + 2
    head = head_cell(s, b, i)
    head_x = head % stride - 1
    head_y = head // stride - 1
    mid_x = (r.width - 1) // 2
    mid_y = (r.height - 1) // 2
    options = 0
    drawn_cell = -1
    for dx in (-1, 1):
        for dy in (-1, 1):
            x = head_x + dx
            y = head_y + dy
            on_board = 0 <= x < r.width and 0 <= y < r.height
            corner = (x == 0 or x == r.width - 1) and (y == 0 or y == r.height - 1)
            outward = (
                x < head_x < mid_x or mid_x < head_x < x or y < head_y < mid_y or mid_y < head_y < y
            )
            centre = x == mid_x and y == mid_y
            if not on_board or corner or not outward or centre or s.food[b, cell_at(r, x, y)]:
                continue
            if avoid and (s.occupied[b, cell_at(r, x, y)] or s.hazards[b, cell_at(r, x, y)]):
                continue
            # The n-th option replaces the one before with chance 1/n, so all are equally likely.
            options += 1
            if rng.below(s.key[b], 0, rng.FIRST_FOOD, 8 * i + options, options) == 0:
                drawn_cell = cell_at(r, x, y)
    return drawn_cell


@kernel
def is_free_for_food(s: Boards, b: int, r: Rules, cell: int, avoid_hazards: bool) -> bool:
    """Whether a cell has no food and no living body, and no living head on its four neighbours.
    Edges don't wrap here.
    """
    if s.food[b, cell] or s.occupied[b, cell] or (avoid_hazards and s.hazards[b, cell]):
        return False
    for i in range(s.cause.shape[1]):
        if is_alive(s, b, i):
            away = cell - head_cell(s, b, i)
            for move in range(4):
                offset = step_offset(r.width, move)
                if away == offset:
                    return False
    return True


@kernel
def spawn_food(s: Boards, b: int, r: Rules, count: int, avoid_hazards: bool) -> None:
    """Add `count` food on different free cells, drawn evenly, or as many as there are free
    cells.
    """
    for n in range(count):
        cell = _random_free_cell(s, b, r, 1 + 64 * n, avoid_hazards)
        if cell < 0:
            return
        add_food(s, b, cell)


@kernel
def _random_free_cell(s: Boards, b: int, r: Rules, index: int, avoid_hazards: bool) -> int:
    """Return a free cell, drawn evenly; -1 if there is none."""
    # A few blind tries nearly always hit on an open board, and cost less than counting all cells.
    area = r.width * r.height
    for attempt in range(8):
        k = rng.below(s.key[b], s.turn[b], rng.SPAWN_FOOD, index + attempt, area)
        cell = cell_at(r, k % r.width, k // r.width)
        if is_free_for_food(s, b, r, cell, avoid_hazards):
            return cell
    free = 0
    for k in range(area):
        free += is_free_for_food(s, b, r, cell_at(r, k % r.width, k // r.width), avoid_hazards)
    if free == 0:
        return -1
    cells_to_skip = rng.below(s.key[b], s.turn[b], rng.SPAWN_FOOD, index + 8, free)
    for k in range(area):
        cell = cell_at(r, k % r.width, k // r.width)
        if is_free_for_food(s, b, r, cell, avoid_hazards):
            if cells_to_skip == 0:
                return cell
            cells_to_skip -= 1
    return -1
