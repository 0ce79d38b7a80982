"""Maps by name. A map decides where snakes start, and what happens to food and hazards at the end
of a turn.
"""

from envs.battlesnake.maps.catalogue import (
    check_board,
    check_game,
    check_set_up,
    register_map,
    set_up,
    update,
)
from envs.battlesnake.maps.dispatch import set_up_board, update_board
from envs.battlesnake.maps.standard import set_up_standard, update_standard

__all__ = [
    "check_board",
    "check_game",
    "check_set_up",
    "register_map",
    "set_up",
    "set_up_board",
    "set_up_standard",
    "update",
    "update_board",
    "update_standard",
]
