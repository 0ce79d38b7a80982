"""Requests of the Battlesnake webhook: read into a `State`, and written from one."""

from envs.battlesnake.webhook.fields import MAX_TEXT, MOST_SIDE, WebhookError
from envs.battlesnake.webhook.hazards import StackedHazards, most_hazards
from envs.battlesnake.webhook.requests import (
    MAX_LISTED_SNAKES,
    MAX_TURN,
    Turn,
    UnheldBoardError,
    read_end_request,
    read_move_request,
)
from envs.battlesnake.webhook.rules import read_settings
from envs.battlesnake.webhook.writing import (
    DEFAULT_TIMEOUT_MS,
    NO_LOOK,
    game_object,
    move_request,
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
