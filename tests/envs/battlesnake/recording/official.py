"""Games of the official engine as recordings."""

from __future__ import annotations

from typing import Any

from envs.battlesnake.recording import Recording
from envs.battlesnake.settings import Settings, within_limits
from envs.battlesnake.webhook import game_object
from tests.envs.battlesnake.traces import games, transitions


def boards_of(game: dict[str, Any]) -> list[dict[str, Any]]:
    """The game's boards in order."""
    steps = list(transitions(game))
    return [steps[0].before, *(step.after for step in steps if not step.over)]


def recorded(game: dict[str, Any], boards: list[dict[str, Any]] | None = None) -> Recording:
    """The recording of a game, or of other boards under its rules."""
    given = game["settings"]
    numbers = {
        "food_spawn_chance": given["foodSpawnChance"],
        "minimum_food": given["minimumFood"],
        "hazard_damage": given["damagePerTurn"],
    }
    numbers = {name: within_limits(name, value) for name, value in numbers.items()}
    settings = Settings(
        ruleset=game["ruleset"],
        map=game["map"],
        shrink_every_n_turns=given["shrinkEveryNTurns"],
        **numbers,
    )
    webhook_game = game_object(settings, str(game["id"]))
    return Recording(
        webhook_game, [_request(webhook_game, board) for board in boards or boards_of(game)]
    )


def _request(game: dict[str, Any], board: dict[str, Any]) -> dict[str, Any]:
    living = [snake for snake in board["snakes"] if not snake["eliminatedCause"]]
    dead = [snake for snake in board["snakes"] if snake["eliminatedCause"]]
    return {
        "game": game,
        "turn": board["turn"],
        "board": {**board, "snakes": living},
        "procsnake": {"eliminated": dead},
    }


def official_games(ruleset: str, game_map: str) -> list[dict[str, Any]]:
    """The recorded map games of a kind that have turns."""
    return [
        game
        for game in games()
        if (game["kind"], game["ruleset"], game["map"]) == ("map", ruleset, game_map)
        and len(game["turns"]) > 1
    ]
