"""Boards as plain dicts in the webhook's form: the rules, the safest moves, and which snakes are
alive.
"""

from envs.battlesnake.plain.board import (
    Board,
    Death,
    Point,
    Snake,
    dead_snakes,
    is_dead,
    living_snakes,
)
from envs.battlesnake.plain.conversion import (
    Layers,
    board_from_state,
    hazard_layers,
    place_hazards,
    state_from_board,
)
from envs.battlesnake.plain.steps import map_update, ruleset_step, setup_board

__all__ = [
    "Board",
    "Death",
    "Layers",
    "Point",
    "Snake",
    "board_from_state",
    "dead_snakes",
    "hazard_layers",
    "is_dead",
    "living_snakes",
    "map_update",
    "place_hazards",
    "ruleset_step",
    "setup_board",
    "state_from_board",
]
