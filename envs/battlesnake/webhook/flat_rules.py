"""Brings the rules in a game's JSON into the form of today's webhook: `ruleset.name`,
`ruleset.settings` and `map`.

The engine that ran until 2026 keeps a game's rules as a flat map of texts, `{"name": "royale",
"damagePerTurn": "14", …}`, with the names that its own rules read. Games downloaded from it have
this form, and so did its requests until 2021."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Entry = Mapping[str, Any]

_SETTINGS = {
    "foodspawnchance": "foodSpawnChance",
    "minimumfood": "minimumFood",
    "hazarddamageperturn": "hazardDamagePerTurn",
    "damageperturn": "hazardDamagePerTurn",
}
_SHRINK = "shrinkeverynturns"
_NUMBERS_WHEN_ABSENT = {"foodSpawnChance": 0, "minimumFood": 0, "hazardDamagePerTurn": 0}
_SHRINK_WHEN_ABSENT = 20
"""What the official rules take for a number that their map doesn't have."""


def game_in_webhook_form(game: Entry) -> dict[str, Any]:
    """Return a game object with nested rules; one that already has them is returned unchanged."""
    ruleset = game.get("ruleset")
    if isinstance(ruleset, str):
        return {**game, "ruleset": {"name": ruleset}}
    if isinstance(ruleset, Mapping):
        flat = {key.lower(): value for key, value in ruleset.items()}
    else:
        flat = {}
    if "settings" in flat or not {*_SETTINGS, _SHRINK} & set(flat):
        return dict(game)
    settings: dict[str, Any] = dict(_NUMBERS_WHEN_ABSENT)
    settings.update((_SETTINGS[key], value) for key, value in flat.items() if key in _SETTINGS)
    settings["royale"] = {"shrinkEveryNTurns": flat.get(_SHRINK, _SHRINK_WHEN_ABSENT)}
    nested = {
        "name": flat.get("name", ""),
        "version": flat.get("version", ""),
        "settings": settings,
    }
    # Before there were maps, a setting named what is the map now.
    game_map = game.get("map") or flat.get("map") or flat.get("hazardmap") or ""
    return {**game, "ruleset": nested, "map": game_map}


def integer_of(value: Any) -> Any:
    """Return the integer that a text or a float such as 90.0 spells; any other value as it is."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str) or len(value) > 20:
        return value
    try:
        return int(value)
    except ValueError:
        return value
