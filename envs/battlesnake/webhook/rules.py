"""Reads the rules in a request's `game` object."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any

from envs.battlesnake.settings import MAP_IDS, RULESETS, Settings, within_limits
from envs.battlesnake.webhook.fields import WebhookError, log_once, short
from envs.battlesnake.webhook.flat_rules import game_in_webhook_form, integer_of

_WHERE = "game.ruleset.settings"


def read_settings(game: Mapping[str, Any], *, strict: bool = False) -> Settings:
    """Return the rules in a `game` object. Settings that are missing are as in a standard game.

    Rules may also be the old engine's flat map (`envs.battlesnake.webhook.flat_rules`), and numbers
    may be texts.

    The official program takes any integer. It is read as the nearest that `Settings` takes, which
    plays the same game. A setting that is not an integer counts as missing and is logged once,
    because a move must not fail for it; `strict` raises `WebhookError`, which names the field."""
    game = game_in_webhook_form(game)
    ruleset = _object(game.get("ruleset"))
    numbers = _object(ruleset.get("settings"))
    royale = _object(numbers.get("royale"))
    ruleset_name = _name_in(RULESETS, ruleset.get("name"))
    shrink_every = _number(royale, "shrinkEveryNTurns", "shrink_every_n_turns", 25, strict)
    if ruleset_name == "royale":
        # The official royale refuses periods below 1, so that no such game is played.
        shrink_every = max(1, shrink_every)
    return Settings(
        ruleset=ruleset_name,
        map=_name_in(MAP_IDS, game.get("map")),
        food_spawn_chance=_number(numbers, "foodSpawnChance", "food_spawn_chance", 15, strict),
        minimum_food=_number(numbers, "minimumFood", "minimum_food", 1, strict),
        hazard_damage=_number(numbers, "hazardDamagePerTurn", "hazard_damage", 14, strict),
        shrink_every_n_turns=shrink_every,
    )


def _name_in(names: Container[str], name: Any) -> str:
    """Return a ruleset's or map's name; "standard" for one that we don't play."""
    if isinstance(name, str) and name in names:
        return name
    return "standard"


def _number(
    parent: Mapping[str, Any], key: str, field_name: str, default: int, strict: bool
) -> int:
    """Return the value of the field `field_name` of `Settings`, which requests call `key`."""
    nearest = partial(within_limits, field_name)
    return integer_as_played(parent, _WHERE, key, default, nearest, strict=strict)


def integer_as_played(
    parent: Mapping[str, Any],
    where: str,
    key: str,
    default: int,
    nearest: Callable[[int], int],
    *,
    strict: bool = False,
) -> int:
    """Return the value of `parent[key]` to play with: the nearest allowed integer, or the default
    if it is missing or not an integer. A changed value is logged once. With `strict`, raises
    `WebhookError` for anything but an integer.
    """
    value = integer_of(parent.get(key))
    if value is None:
        return default
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if strict and not is_integer:
        raise WebhookError(f"{where}.{key} is {short(value)}; expected an integer")
    number = nearest(value) if is_integer else default
    if number != value:
        log_once(f"{where}.{key}", f"is {short(value)}; read as {number}")
    return number


def _object(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one: no move must fail for a setting."""
    if isinstance(value, Mapping):
        return value
    return {}
