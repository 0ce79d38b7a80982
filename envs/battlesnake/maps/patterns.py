"""Maps whose hazards follow from the size of the board: inner wall, rings, columns, royale's wall,
sinkholes, pits and pools.

* hz_inner_wall has hazards on the outline one cell in from the edge; hz_rings on the outlines 1, 3,
  5, … cells in; hz_columns where both x and y are odd.
* royale has hazards outside a rectangle that loses one side every `shrink_every_n_turns`, which
  must be 1 or more.
* sinkholes adds a square around the centre every `shrink_every_n_turns` (10 if that is 0). Each
  square is larger than the last and lies over it.
* hz_hazard_pits (11x11, 4 snakes) has 21 pits that go through 0, 1, 2, 3, 4, 4, 4 layers, with a
  new stage every `shrink_every_n_turns`. The official program crashes if that is 0; here the pits
  then stay as they are, and `check_game` refuses it.
* healing_pools (7x7, 11x11, 19x19) has a few cells, of which one vanishes every
  `shrink_every_n_turns` (never if that is 0). They heal if `hazard_damage` is negative.
"""

from __future__ import annotations

import numpy as np

from envs.battlesnake import rng
from envs.battlesnake.jit import allocating_kernel, kernel
from envs.battlesnake.maps.standard import NO_START_CELL, OK, START_LENGTH, WRONG_SIZE, cell_at
from envs.battlesnake.rules import shrink
from envs.battlesnake.settings import MAP_IDS, Rules
from envs.battlesnake.state import Boards, add_hazard, add_snake, clear_hazards

INNER_WALL = MAP_IDS["hz_inner_wall"]
RINGS = MAP_IDS["hz_rings"]
COLUMNS = MAP_IDS["hz_columns"]
_SINKHOLE_PERIOD = 10
_PIT_LAYERS = (0, 1, 2, 3, 4, 4, 4)

# (size, option, pool, (x, y)) of the healing pools on 7x7, 11x11 and 19x19; -1: no such pool or
# option.
_POOLS = np.full((3, 4, 4, 2), -1, np.int16)
_POOLS[0, 0, 0] = (3, 3)
_POOLS[1, :, :2] = [[(3, 3), (7, 7)], [(3, 7), (7, 3)], [(3, 5), (7, 5)], [(5, 7), (5, 3)]]
_POOLS[2, 0] = [(5, 5), (13, 13), (5, 13), (13, 5)]
_POOLS[2, 1] = [(5, 10), (13, 10), (10, 13), (10, 5)]


@kernel
def add_pattern(s: Boards, b: int, r: Rules) -> None:
    """Add the hazards of inner wall, rings or columns."""
    for y in range(r.height):
        for x in range(r.width):
            edge = min(x, y, r.width - 1 - x, r.height - 1 - y)
            if r.map_id == INNER_WALL:
                hazard = edge == 1
            elif r.map_id == RINGS:
                hazard = edge % 2 == 1 and edge + 1 < r.width // 2
            else:
                hazard = x % 2 == 1 and y % 2 == 1
            if hazard:
                add_hazard(s, b, cell_at(r, x, y), 1)


@kernel
def update_royale(s: Boards, b: int, r: Rules) -> None:
    """Draw the same wall as the ruleset royale. Other hazards stay until the first side moves
    in.
    """
    if r.shrink_every > 0 and s.turn[b] + 1 >= r.shrink_every:
        shrink(s, b, r)


@kernel
def update_sinkholes(s: Boards, b: int, r: Rules) -> None:
    """Add one layer to a square around the centre, without its corners."""
    every = r.shrink_every if r.shrink_every > 0 else _SINKHOLE_PERIOD
    rings = 5
    if r.width == 7:
        rings = 3
    elif r.width == 19:
        rings = 7
    since = s.turn[b] - 1
    if since % every or since < 0 or s.turn[b] > every * rings:
        return
    radius = since // every
    for y in range(max(0, r.height // 2 - radius), min(r.height, r.height // 2 + radius + 1)):
        for x in range(max(0, r.width // 2 - radius), min(r.width, r.width // 2 + radius + 1)):
            corner = abs(x - r.width // 2) == radius and abs(y - r.height // 2) == radius
            if radius == 0 or not corner:
                add_hazard(s, b, cell_at(r, x, y), 1)


@allocating_kernel
def place_among_pits(s: Boards, b: int, r: Rules) -> int:
    """Place the snakes, in random order, on the four cells of the pits' grid that aren't pits.
    Returns a set-up code.
    """
    if r.width != 11 or r.height != 11:
        return WRONG_SIZE
    if s.cause.shape[1] > 4:
        return NO_START_CELL
    cells = np.array([cell_at(r, 1, 1), cell_at(r, 9, 1), cell_at(r, 1, 9), cell_at(r, 9, 9)])
    rng.shuffle(cells, s.key[b], 0, rng.START_CELLS, 0)
    for i in range(s.cause.shape[1]):
        add_snake(s, b, i, cells[i], START_LENGTH)
    return OK


@kernel
def update_pits(s: Boards, b: int, r: Rules) -> None:
    """Give all pits the number of layers of the stage."""
    if r.shrink_every < 1 or s.turn[b] % r.shrink_every:
        return
    clear_hazards(s, b)
    layers = _PIT_LAYERS[s.turn[b] // r.shrink_every % 7]
    if layers == 0:
        return
    for y in range(1, r.height, 2):
        for x in range(1, r.width, 2):
            start_cell = (x == 1 or x == r.width - 2) and (y == 1 or y == r.height - 2)
            if not start_cell:
                add_hazard(s, b, cell_at(r, x, y), layers)


@kernel
def add_pools(s: Boards, b: int, r: Rules) -> int:
    """Add the pools, by one of the arrangements for boards of this size, drawn at random. Returns a
    set-up code.
    """
    if r.width != r.height or (r.width != 7 and r.width != 11 and r.width != 19):
        return WRONG_SIZE
    size = 2
    if r.width == 7:
        size = 0
    elif r.width == 11:
        size = 1
    options = (1, 4, 2)[size]
    option = rng.below(s.key[b], 0, rng.MAP_HAZARDS, 0, options)
    for pool in range(4):
        x = _POOLS[size, option, pool, 0]
        y = _POOLS[size, option, pool, 1]
        if x >= 0:
            add_hazard(s, b, cell_at(r, x, y), 1)
    return OK


@kernel
def update_pools(s: Boards, b: int, r: Rules) -> None:
    """Remove a random pool when its time has come."""
    if r.shrink_every < 1 or s.turn[b] == 0 or s.turn[b] % r.shrink_every or s.num_hazards[b] == 0:
        return
    layers_to_skip = rng.below(s.key[b], s.turn[b], rng.MAP_HAZARDS, 0, s.num_hazards[b])
    for cell in range(s.hazards.shape[1]):
        layers_to_skip -= s.hazards[b, cell]
        if layers_to_skip < 0:
            add_hazard(s, b, cell, -1)
            return
