"""Castles, rivers, islands and the arcade's maze. They have fixed hazards and start cells, and some
have fixed places for food.

* hz_castle_wall (11x11, 8 snakes), _lg (19x19, 8), _xl (25x25, 12) have no first food. From turn 10
  on, one food per turn appears on a free spot in the walls, until there are 2 (in _xl 4).
* hz_rivers_bridges (11x11, 8), _lg (19x19, 12), _xl (25x25, 12) and hz_islands_bridges (11x11, 4),
  _lg (19x19, 16) have standard food, but never on hazards.
* arcade_maze (19x21, 6) has food on 12 spots, with a chance of (food_spawn_chance + 1) %. If
  minimum_food > 0, the first food is in the middle; minimum_food has no other effect.

In castles and in the arcade, food doesn't appear on dead bodies either, as in the official maps.
"""

from __future__ import annotations

import numpy as np

from envs.battlesnake import rng
from envs.battlesnake.jit import allocating_kernel, kernel
from envs.battlesnake.maps.drawings import FIRST_DRAWN, FOOD_SPOTS, LAYERS, SIZES, START_GROUPS
from envs.battlesnake.maps.standard import (
    NO_FOOD_CELL,
    NO_START_CELL,
    OK,
    START_LENGTH,
    WRONG_SIZE,
    cell_at,
    outward_diagonal,
    place_in_quadrants,
    refill_food,
)
from envs.battlesnake.settings import MAP_IDS, Rules
from envs.battlesnake.state import (
    ABSENT,
    Boards,
    add_food,
    add_hazard,
    add_snake,
    body_cell,
    head_cell,
    step_offset,
)

CASTLE_XL = MAP_IDS["hz_castle_wall_xl"]  # the last of the castles
ARCADE = MAP_IDS["arcade_maze"]
_FIRST_CASTLE_FOOD = 10


@allocating_kernel
def set_up_drawn(s: Boards, b: int, r: Rules) -> int:
    """Place the hazards, snakes and first food of a drawn map. Returns a set-up code."""
    drawing = r.map_id - FIRST_DRAWN
    if r.width != SIZES[drawing, 0] or r.height != SIZES[drawing, 1]:
        return WRONG_SIZE
    for cell in range(s.hazards.shape[1]):
        if LAYERS[drawing, cell]:
            add_hazard(s, b, cell, LAYERS[drawing, cell])
    if r.map_id <= CASTLE_XL:
        return _place_in_castle(s, b, drawing)
    if r.map_id == ARCADE:
        return _set_up_arcade(s, b, r, drawing)
    cells_per_quadrant = 4 if START_GROUPS[drawing, 0, 3] >= 0 else 2
    code = place_in_quadrants(s, b, START_GROUPS[drawing].astype(np.int64), cells_per_quadrant)
    if code != OK:
        return code
    return _place_food_on_banks(s, b, r)


@kernel
def update_drawn(s: Boards, b: int, r: Rules) -> None:
    """Add the food of a drawn map at the end of a turn."""
    drawing = r.map_id - FIRST_DRAWN
    if r.map_id <= CASTLE_XL:
        most = 4 if r.map_id == CASTLE_XL else 2
        if s.turn[b] >= _FIRST_CASTLE_FOOD and s.num_food[b] != most:
            _feed_on_spot(s, b, r, drawing, True)
    elif r.map_id == ARCADE:
        if (
            rng.below(s.key[b], s.turn[b], rng.SPAWN_FOOD, 0, 100) <= r.food_spawn_chance
            and r.food_spawn_chance > 0
        ):
            _feed_on_spot(s, b, r, drawing, False)
    else:
        refill_food(s, b, r, True)


@allocating_kernel
def _place_in_castle(s: Boards, b: int, drawing: int) -> int:
    """Deal a shuffled pool: one group of 4 cells for up to 4 snakes, two for up to 8, three for up
    to 12.
    """
    snakes = s.cause.shape[1]
    groups = (snakes + 3) // 4
    if groups > 4 or START_GROUPS[drawing, groups - 1, 0] < 0:
        return NO_START_CELL
    pool = START_GROUPS[drawing].astype(np.int64).ravel()[: 4 * groups]
    rng.shuffle(pool, s.key[b], 0, rng.START_CELLS, 0)
    for i in range(snakes):
        add_snake(s, b, i, pool[i], START_LENGTH)
    return OK


@allocating_kernel
def _set_up_arcade(s: Boards, b: int, r: Rules, drawing: int) -> int:
    """Four shuffled cells, then two fixed ones; food in the middle."""
    snakes = s.cause.shape[1]
    if snakes > 6:
        return NO_START_CELL
    corners = START_GROUPS[drawing, 0].astype(np.int64)
    rng.shuffle(corners, s.key[b], 0, rng.START_CELLS, 0)
    for i in range(snakes):
        if i < 4:
            cell = corners[i]
        else:
            cell = np.int64(START_GROUPS[drawing, i - 3, 0])
        add_snake(s, b, i, cell, START_LENGTH)
    if r.minimum_food > 0:
        add_food(s, b, cell_at(r, 9, 11))
    return OK


@kernel
def _place_food_on_banks(s: Boards, b: int, r: Rules) -> int:
    """The standard first food kept off snakes and hazards; the centre is a hazard on all these
    maps, so it gets none.
    """
    for i in range(s.cause.shape[1]):
        cell = outward_diagonal(s, b, r, i, True)
        if cell < 0:
            return NO_FOOD_CELL
        add_food(s, b, cell)
    return OK


@kernel
def _feed_on_spot(s: Boards, b: int, r: Rules, drawing: int, in_castle: bool) -> None:
    """Put one food on a free spot of the map, drawn evenly, if there is one."""
    free = 0
    drawn_cell = -1
    for cell in FOOD_SPOTS[drawing]:
        if cell >= 0 and _is_free_spot(s, b, r, cell, in_castle):
            free += 1
            if rng.below(s.key[b], s.turn[b], rng.SPAWN_FOOD, free, free) == 0:
                drawn_cell = cell
    if drawn_cell >= 0:
        add_food(s, b, drawn_cell)


@kernel
def _is_free_spot(s: Boards, b: int, r: Rules, cell: int, in_castle: bool) -> bool:
    """No food and no body, dead or alive; in a castle neither food nor a head on the four
    neighbours.
    """
    if s.food[b, cell] or s.occupied[b, cell]:
        return False
    if in_castle:
        for move in range(4):
            offset = step_offset(r.width, move)
            if s.food[b, cell + offset]:
                return False
    for i in range(s.cause.shape[1]):
        if s.cause[b, i] == ABSENT:
            continue
        if in_castle:
            for move in range(4):
                offset = step_offset(r.width, move)
                if head_cell(s, b, i) == cell + offset:
                    return False
        for entry in range(s.length[b, i]):
            if body_cell(s, b, i, entry) == cell:
                return False
    return True
