"""The settings of a game: the ruleset, the map and their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from envs.common.errors import ConfigError, UnknownNameError, check_range, check_switch

RULESETS = ("standard", "solo", "royale", "wrapped", "constrictor", "wrapped_constrictor")

OFFICIAL_MAPS = (
    "standard",
    "empty",
    "royale",
    "hz_inner_wall",
    "hz_rings",
    "hz_columns",
    "hz_spiral",
    "hz_scatter",
    "hz_grow_box",
    "hz_expand_box",
    "hz_expand_scatter",
    "snail_mode",
    "sinkholes",
    "healing_pools",
    "hz_hazard_pits",
    "hz_castle_wall",
    "hz_castle_wall_lg",
    "hz_castle_wall_xl",
    "hz_rivers_bridges",
    "hz_rivers_bridges_lg",
    "hz_rivers_bridges_xl",
    "hz_islands_bridges",
    "hz_islands_bridges_lg",
    "arcade_maze",
    "solo_maze",
)

STANDARD_MAP = "standard"
"""The one map that is compiled into the batch kernels."""

# The number of each map, by which the kernels know it. `envs.battlesnake.maps.register_map` adds
# users' maps.
MAP_IDS = {name: number for number, name in enumerate(OFFICIAL_MAPS)}


LIMITS = {
    "food_spawn_chance": (0, 101),
    "minimum_food": (0, 625),
    "hazard_damage": (-1000, 1000),
    "shrink_every_n_turns": (0, 1 << 30),
}
"""The smallest and the largest value of each number of `Settings`."""


class Rules(NamedTuple):
    """The kernels' form of a game's rules, all plain integers and booleans. `Settings.rules()`
    makes one.
    """

    width: int
    height: int
    solo: bool
    wrapped: bool
    royale: bool
    constrictor: bool
    food_spawn_chance: int
    minimum_food: int
    hazard_damage: int
    shrink_every: int
    map_id: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A game's rules, as a user states them. Raises `ConfigError` or `UnknownNameError` for values
    that no game can have.
    """

    ruleset: str = "standard"
    """One of `RULESETS`."""
    map: str = "standard"
    """The map, by a name in `MAP_IDS`. It places snakes, food and hazards."""
    food_spawn_chance: int = 15
    """The chance of new food in a turn, in percent, 0 to 101.

    As in the official engine, food appears in (chance - 1) % of turns.
    """
    minimum_food: int = 1
    """After every turn, food is added until there is this much of it."""
    hazard_damage: int = 14
    """The health that a hazard layer takes per turn, -1000 to 1000. A negative number heals."""
    shrink_every_n_turns: int = 25
    """The number of turns between two moves of a royale wall. Other maps use it as their own
    period.
    """
    solo: bool = False
    """Play on until no snake is left, whatever the ruleset."""

    def __post_init__(self) -> None:
        if self.ruleset not in RULESETS:
            raise UnknownNameError("ruleset", self.ruleset, RULESETS)
        if self.map not in list(MAP_IDS):
            raise UnknownNameError("map", self.map, MAP_IDS)
        for name, (low, high) in LIMITS.items():
            object.__setattr__(self, name, check_range(name, getattr(self, name), low, high))
        check_switch("solo", self.solo)
        if self.ruleset == "royale" and self.shrink_every_n_turns < 1:
            raise ConfigError(
                f"shrink_every_n_turns is {self.shrink_every_n_turns}; ruleset royale needs 1 or"
                " more"
            )

    def rules(self, width: int, height: int) -> Rules:
        """Return the kernels' form of these settings, for boards of that size."""
        return Rules(
            width=width,
            height=height,
            solo=self.solo or self.ruleset == "solo",
            wrapped=self.ruleset in ("wrapped", "wrapped_constrictor"),
            royale=self.ruleset == "royale",
            constrictor=self.ruleset in ("constrictor", "wrapped_constrictor"),
            food_spawn_chance=self.food_spawn_chance,
            minimum_food=self.minimum_food,
            hazard_damage=self.hazard_damage,
            shrink_every=self.shrink_every_n_turns,
            map_id=MAP_IDS[self.map],
        )


def within_limits(name: str, value: int) -> int:
    """Return the number nearest to `value` that `Settings` takes in the field `name`.

    The official program takes any integer, and plays the same game with that nearest number: with a
    chance below 0 no food appears, above 101 it appears in each turn; no board has room for more
    than 625 food; a damage of 100 takes or gives all health; and a period below 0 counts as 0."""
    low, high = LIMITS[name]
    return min(max(value, low), high)
