"""Writes requests as the official engine sends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envs.battlesnake.plain import Snake, board_from_state, living_snakes
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import State

DEFAULT_TIMEOUT_MS = 500
NO_LOOK = {"color": "#888888", "head": "default", "tail": "default"}
"""The `customizations` of a snake that chose none."""


def game_object(
    settings: Settings, game_id: str, *, timeout_ms: int = DEFAULT_TIMEOUT_MS, source: str = ""
) -> dict[str, Any]:
    """Return the `game` object of a request, as the official command line sends it."""
    return {
        "id": game_id,
        "ruleset": {
            "name": settings.ruleset,
            "version": "cli",
            "settings": {
                "foodSpawnChance": settings.food_spawn_chance,
                "minimumFood": settings.minimum_food,
                "hazardDamagePerTurn": settings.hazard_damage,
                "hazardMap": "",
                "hazardMapAuthor": "",
                "royale": {"shrinkEveryNTurns": settings.shrink_every_n_turns},
                "squad": {
                    "allowBodyCollisions": False,
                    "sharedElimination": False,
                    "sharedHealth": False,
                    "sharedLength": False,
                },
            },
        },
        "map": settings.map,
        "timeout": timeout_ms,
        "source": source,
    }


def move_request(
    state: State,
    board: int,
    *,
    game: Mapping[str, Any],
    ids: Sequence[str],
    names: Sequence[str],
    you: int,
    latencies: Sequence[str] | None = None,
    customizations: Sequence[Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """Return the request that snake `you` gets for a board. It lists living snakes by slot, and
    food and hazards by x, then y.

    `ids`, `names`, `latencies` (milliseconds as text) and `customizations` have one entry per slot.
    A dead `you` is shown as it died."""
    plain = board_from_state(state, board, ids)
    latencies = latencies or ["0"] * len(ids)
    looks = customizations or [NO_LOOK] * len(ids)

    def snake_object(snake: Snake) -> dict[str, Any]:
        slot = ids.index(snake["id"])
        return {
            "id": snake["id"],
            "name": names[slot],
            "latency": latencies[slot],
            "health": snake["health"],
            "body": snake["body"],
            "head": snake["body"][0],
            "length": len(snake["body"]),
            "shout": "",
            "squad": "",
            "customizations": dict(looks[slot]),
        }

    objects = {snake["id"]: snake_object(snake) for snake in plain["snakes"]}
    return {
        "game": dict(game),
        "turn": plain["turn"],
        "board": {
            "height": state.height,
            "width": state.width,
            "snakes": [objects[snake["id"]] for snake in living_snakes(plain)],
            "food": plain["food"],
            "hazards": plain["hazards"],
        },
        "you": objects[ids[you]],
    }
