"""Boards as plain dicts in the form of the webhook: the rules on them, their safest moves, and who
of their snakes lives.
"""

from envs.battlesnake.plain.boards import (
    Board,
    board_from_state,
    hazard_layers,
    map_update,
    place_hazards,
    ruleset_step,
    setup_board,
    state_from_board,
)

__all__ = [
    "Board",
    "board_from_state",
    "hazard_layers",
    "map_update",
    "place_hazards",
    "ruleset_step",
    "setup_board",
    "state_from_board",
]
