"""The map solo_maze: one snake, one food, and a new and larger maze for every food that is eaten.

The first level is 0. The maze of a level is a square with a side of 7 + level cells, or as many as
fit. All around it are hazards, except in row y = 0, which shows the level as a binary number with
the highest bit on the left. The level is read back from there, so a ruleset that removes hazards
(royale) confuses it. The constrictor rulesets remove the food in each turn, so every turn would
start a new level, for ever; `check_game` refuses them. The snake has level + 3 body entries, or as
many as its ring holds (width * height + 3); the official program continues beyond that, with snakes
longer than the board."""

from __future__ import annotations

import numpy as np

from envs.battlesnake import rng
from envs.battlesnake.jit import allocating_kernel, kernel
from envs.battlesnake.maps.standard import NO_START_CELL, OK, WRONG_SIZE, cell_at
from envs.battlesnake.rules import remove_food
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import (
    ABSENT,
    FULL_HEALTH,
    Boards,
    add_food,
    add_hazard,
    add_snake,
    body_cell,
    clear_hazards,
    head_cell,
    is_alive,
)

SMALLEST_SIDE = 7
_FIRST_SIDE = 7
_FOOD_TRIES = 100
_NEAR = 5


@allocating_kernel
def set_up_maze(s: Boards, b: int, r: Rules) -> int:
    """Set up the first level. Returns a set-up code."""
    if r.width < SMALLEST_SIDE or r.height < SMALLEST_SIDE:
        return WRONG_SIZE
    if s.cause.shape[1] != 1:
        return NO_START_CELL
    add_snake(s, b, 0, cell_at(r, 0, 0), 1)
    _start_level(s, b, r, 0)
    return OK


@allocating_kernel
def update_maze(s: Boards, b: int, r: Rules) -> None:
    """Start the next level if no food is left. On high levels, move the food away from a snake that
    comes near.
    """
    level = _level(s, b, r)
    if s.num_food[b] == 0:
        _start_level(s, b, r, level + 1)
    elif level - 5 > min(r.width, r.height - 2) - _FIRST_SIDE:
        for cell in range(s.food.shape[1]):
            if s.food[b, cell] and _distance(r, head_cell(s, b, 0), cell) < _NEAR:
                s.num_food[b] -= s.food[b, cell]
                s.food[b, cell] = 0
                _place_food(s, b, r, level)
                return


@kernel
def _level(s: Boards, b: int, r: Rules) -> int:
    level = 0
    for x in range(r.width):
        level = 2 * level + int(s.hazards[b, cell_at(r, x, 0)] > 0)
    return level


@kernel
def _side(r: Rules, level: int) -> int:
    return min(_FIRST_SIDE + level, r.width, r.height - 2)


@allocating_kernel
def _start_level(s: Boards, b: int, r: Rules, level: int) -> None:
    """Lay out walls, snake and food of a level."""
    side = _side(r, level)
    corner_x = (r.width - side) // 2
    corner_y = (r.height - side) // 2
    clear_hazards(s, b)
    remove_food(s, b)
    for x in range(r.width):
        if level >> (r.width - 1 - x) & 1:
            add_hazard(s, b, cell_at(r, x, 0), 1)
        for y in range(1, r.height):
            if not (corner_x <= x < corner_x + side and corner_y <= y < corner_y + side):
                add_hazard(s, b, cell_at(r, x, y), 1)
    _divide(s, b, r, corner_x, corner_y, side)
    head = cell_at(r, corner_x, corner_y)
    below = cell_at(r, corner_x, corner_y - 1)
    _replace_snake(s, b, head, below, level + 3)
    _place_food(s, b, r, level)


@kernel
def _replace_snake(s: Boards, b: int, head: int, rest: int, length: int) -> None:
    """Lay the snake out anew: its head on `head`, and all other entries on `rest`.

    A dead snake stays dead, as in the official program.
    """
    if s.cause[b, 0] == ABSENT:
        return
    # Only living bodies occupy cells.
    present = int(is_alive(s, b, 0))
    for entry in range(s.length[b, 0]):
        s.occupied[b, body_cell(s, b, 0, entry)] -= present
    length = min(length, s.body.shape[2])
    s.head[b, 0] = 0
    s.length[b, 0] = length
    s.health[b, 0] = FULL_HEALTH
    for entry in range(length):
        cell = head if entry == 0 else rest
        s.body[b, 0, entry] = cell
        s.occupied[b, cell] += present


@kernel
def _distance(r: Rules, cell: int, other: int) -> int:
    """Manhattan distance of two padded cells."""
    stride = r.width + 2
    return abs(cell // stride - other // stride) + abs(cell % stride - other % stride)


@kernel
def _place_food(s: Boards, b: int, r: Rules, level: int) -> None:
    """Put one food on a random open cell of the maze, away from the head.

    After 100 tries in vain there is none.
    """
    side = _side(r, level)
    corner_x = (r.width - side) // 2
    corner_y = (r.height - side) // 2
    for n in range(_FOOD_TRIES):
        x = corner_x + rng.below(s.key[b], s.turn[b], rng.SPAWN_FOOD, 2 * n, side)
        y = corner_y + rng.below(s.key[b], s.turn[b], rng.SPAWN_FOOD, 2 * n + 1, side)
        cell = cell_at(r, x, y)
        if s.hazards[b, cell] or _is_on_snake(s, b, cell):
            continue
        if _distance(r, head_cell(s, b, 0), cell) >= min(_NEAR, side // 2):
            add_food(s, b, cell)
            return


@kernel
def _is_on_snake(s: Boards, b: int, cell: int) -> bool:
    for entry in range(s.length[b, 0]):
        if body_cell(s, b, 0, entry) == cell:
            return True
    return False


@allocating_kernel
def _divide(s: Boards, b: int, r: Rules, corner_x: int, corner_y: int, side: int) -> None:
    """Build the maze's walls by recursive division of its square.

    Coordinates count from the maze's lower left corner, which is (corner_x, corner_y) of the board.
    A room spans (x0, y0)..(x1, y1), the wall on its right or upper edge included. No wall may end
    in an older wall's hole: bit k of `holes_x` (`holes_y`) is set if a horizontal (vertical) wall
    around the room has one at x = k (y = k)."""
    rooms = np.zeros((256, 6), np.int64)
    rooms[0, 2] = rooms[0, 3] = side - 1
    n = 1
    draws = 0
    while n:
        n -= 1
        x0 = rooms[n, 0]
        y0 = rooms[n, 1]
        x1 = rooms[n, 2]
        y1 = rooms[n, 3]
        holes_x = rooms[n, 4]
        holes_y = rooms[n, 5]
        if x1 - x0 < 3 and y1 - y0 < 3:
            continue
        wall_x = _pick_line(s, b, draws, x0 + 1, x1 - 2, holes_x)
        wall_y = _pick_line(s, b, draws + 1, y0 + 1, y1 - 2, holes_y)
        has_wall_x = wall_x >= 0
        has_wall_y = wall_y >= 0
        # Where the left and the lower parts of the room end: at its walls, or with the room.
        end_x = wall_x if has_wall_x else x1
        end_y = wall_y if has_wall_y else y1
        if has_wall_x:
            for y in range(y0, y1 + 1):
                _build(s, b, cell_at(r, corner_x + wall_x, corner_y + y))
        if has_wall_y:
            for x in range(x0, x1 + 1):
                _build(s, b, cell_at(r, corner_x + x, corner_y + wall_y))
        if has_wall_x:
            # With both walls three holes join the four parts: below, above and left of the
            # crossing.
            hole = _pick(s, b, draws + 2, y0, end_y - 1)
            _open(s, b, cell_at(r, corner_x + wall_x, corner_y + hole))
            holes_y |= 1 << hole
            if has_wall_y:
                hole = _pick(s, b, draws + 3, wall_y + 1, y1 - 1)
                _open(s, b, cell_at(r, corner_x + wall_x, corner_y + hole))
                holes_y |= 1 << hole
        if has_wall_y:
            hole = _pick(s, b, draws + 4, x0, end_x - 1)
            _open(s, b, cell_at(r, corner_x + hole, corner_y + wall_y))
            holes_x |= 1 << hole
        draws += 5
        for right_part in range(1 + int(has_wall_x)):
            for upper_part in range(1 + int(has_wall_y)):
                rooms[n, 0] = x0
                rooms[n, 1] = y0
                rooms[n, 2] = end_x
                rooms[n, 3] = end_y
                if right_part:
                    rooms[n, 0] = wall_x + 1
                    rooms[n, 2] = x1
                if upper_part:
                    rooms[n, 1] = wall_y + 1
                    rooms[n, 3] = y1
                rooms[n, 4] = holes_x
                rooms[n, 5] = holes_y
                n += 1
        if not has_wall_x and not has_wall_y:
            n -= 1  # The only part is the room itself, which can't be divided.


@kernel
def _pick(s: Boards, b: int, index: int, low: int, high: int) -> int:
    """A random integer in low..high."""
    return low + rng.below(s.key[b], s.turn[b], rng.MAP_HAZARDS, index, high - low + 1)


@kernel
def _pick_line(s: Boards, b: int, index: int, low: int, high: int, barred: int) -> int:
    """A random integer in low..high whose bit is not barred; -1 if there is none."""
    free = 0
    for line in range(low, high + 1):
        free += (barred >> line & 1) == 0
    if free == 0:
        return -1
    lines_to_skip = _pick(s, b, index, 0, free - 1)
    for line in range(low, high + 1):
        if barred >> line & 1:
            continue
        if lines_to_skip == 0:
            return line
        lines_to_skip -= 1
    return -1


@kernel
def _build(s: Boards, b: int, cell: int) -> None:
    if s.hazards[b, cell] == 0:
        add_hazard(s, b, cell, 1)


@kernel
def _open(s: Boards, b: int, cell: int) -> None:
    add_hazard(s, b, cell, -s.hazards[b, cell])
