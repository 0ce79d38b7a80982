"""Requests of the Battlesnake webhook: read into a `State`, and written from one."""

from envs.battlesnake.webhook.requests import (
    DEFAULT_TIMEOUT_MS,
    MAX_LISTED_SNAKES,
    MAX_TEXT,
    MAX_TURN,
    MOST_SIDE,
    NO_LOOK,
    StackedHazards,
    Turn,
    UnheldBoardError,
    WebhookError,
    game_object,
    most_hazards,
    move_request,
    read_end_request,
    read_move_request,
    read_settings,
)

__all__ = [
    "DEFAULT_TIMEOUT_MS",
    "MAX_LISTED_SNAKES",
    "MAX_TEXT",
    "MAX_TURN",
    "MOST_SIDE",
    "NO_LOOK",
    "StackedHazards",
    "Turn",
    "UnheldBoardError",
    "WebhookError",
    "game_object",
    "most_hazards",
    "move_request",
    "read_end_request",
    "read_move_request",
    "read_settings",
]
