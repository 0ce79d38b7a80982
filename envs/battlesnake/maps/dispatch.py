"""Calls a map's kernels by the map's number. `standard` is tested first, because nearly every game
is played on it.
"""

from __future__ import annotations

from envs.battlesnake.jit import allocating_kernel, kernel
from envs.battlesnake.maps.drawings import FIRST_DRAWN
from envs.battlesnake.maps.drawn import ARCADE, set_up_drawn, update_drawn
from envs.battlesnake.maps.maze import set_up_maze, update_maze
from envs.battlesnake.maps.patterns import (
    COLUMNS,
    INNER_WALL,
    add_pattern,
    add_pools,
    place_among_pits,
    update_pits,
    update_pools,
    update_royale,
    update_sinkholes,
)
from envs.battlesnake.maps.snail import update_trails
from envs.battlesnake.maps.spreading import (
    update_expand_box,
    update_expand_scatter,
    update_grow_box,
    update_scatter,
    update_spiral,
)
from envs.battlesnake.maps.standard import (
    OK,
    place_first_food,
    place_snakes,
    set_up_standard,
    update_standard,
)
from envs.battlesnake.settings import MAP_IDS, OFFICIAL_MAPS, Rules
from envs.battlesnake.state import Boards

STANDARD, EMPTY, ROYALE, SNAIL = (
    MAP_IDS[name] for name in ("standard", "empty", "royale", "snail_mode")
)
SPIRAL, SCATTER, GROW_BOX = (MAP_IDS[name] for name in ("hz_spiral", "hz_scatter", "hz_grow_box"))
EXPAND_BOX = MAP_IDS["hz_expand_box"]
EXPAND_SCATTER = MAP_IDS["hz_expand_scatter"]
SINKHOLES, POOLS, PITS = (
    MAP_IDS[name] for name in ("sinkholes", "healing_pools", "hz_hazard_pits")
)
MAZE = MAP_IDS["solo_maze"]
NUM_OFFICIAL = len(OFFICIAL_MAPS)


@allocating_kernel
def set_up_board(s: Boards, b: int, r: Rules) -> int:
    """Place the snakes, food and hazards of a new game on an empty board, by an official map.
    Returns a set-up code.
    """
    if r.map_id == STANDARD:
        return set_up_standard(s, b, r)
    if r.map_id == EMPTY:
        return place_snakes(s, b, r)
    if r.map_id == MAZE:
        return set_up_maze(s, b, r)
    if FIRST_DRAWN <= r.map_id <= ARCADE:
        return set_up_drawn(s, b, r)
    if r.map_id == PITS:
        code = place_among_pits(s, b, r)
        if code != OK:
            return code
        return place_first_food(s, b, r)
    code = set_up_standard(s, b, r)
    if code != OK:
        return code
    if INNER_WALL <= r.map_id <= COLUMNS:
        add_pattern(s, b, r)
    elif r.map_id == POOLS:
        return add_pools(s, b, r)
    return OK


@kernel
def update_board(s: Boards, b: int, r: Rules) -> None:
    """Do an official map's part at the end of a turn: after the ruleset's step, before the turn
    number goes up.

    It does nothing on a user's map, which `envs.battlesnake.maps.update` runs.
    """
    if r.map_id == STANDARD:
        update_standard(s, b, r)
    elif r.map_id != EMPTY and r.map_id < NUM_OFFICIAL:
        _update_other(s, b, r)


@allocating_kernel
def _update_other(s: Boards, b: int, r: Rules) -> None:
    if FIRST_DRAWN <= r.map_id <= ARCADE:
        update_drawn(s, b, r)
    elif r.map_id == MAZE:
        update_maze(s, b, r)
    else:
        update_standard(s, b, r)
        if r.map_id == ROYALE:
            update_royale(s, b, r)
        elif r.map_id == SNAIL:
            update_trails(s, b)
        elif SPIRAL <= r.map_id <= EXPAND_SCATTER:
            _spread(s, b, r)
        elif r.map_id == SINKHOLES:
            update_sinkholes(s, b, r)
        elif r.map_id == POOLS:
            update_pools(s, b, r)
        elif r.map_id == PITS:
            update_pits(s, b, r)


@allocating_kernel
def _spread(s: Boards, b: int, r: Rules) -> None:
    if r.map_id == SPIRAL:
        update_spiral(s, b, r)
    elif r.map_id == SCATTER:
        update_scatter(s, b, r)
    elif r.map_id == GROW_BOX:
        update_grow_box(s, b, r)
    elif r.map_id == EXPAND_BOX:
        update_expand_box(s, b, r)
    else:
        update_expand_scatter(s, b, r)
