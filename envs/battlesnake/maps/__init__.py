"""Maps by name: who starts where, and what the board does at the end of a turn."""

from envs.battlesnake.maps.catalogue import (
    check_board,
    check_game,
    check_set_up,
    register_map,
    set_up,
    update,
    user_map,
)
from envs.battlesnake.maps.dispatch import set_up_board, update_board

__all__ = [
    "check_board",
    "check_game",
    "check_set_up",
    "register_map",
    "set_up",
    "set_up_board",
    "update",
    "update_board",
    "user_map",
]
