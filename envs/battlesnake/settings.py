"""What is agreed before a game: ruleset, map and their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from envs.errors import ConfigError, UnknownNameError

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

# The one map that is compiled into the batch kernels.
STANDARD_MAP = "standard"

# Maps by name; the number is how the kernels know them. `envs.battlesnake.maps.register_map` adds a user's.
MAP_IDS = {name: number for number, name in enumerate(OFFICIAL_MAPS)}


class Rules(NamedTuple):
    """What the kernels need to know of a game's rules; all plain integers and booleans. `Settings.rules()` makes one."""

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
    """A game's rules as a user states them. Raises `ConfigError` or `UnknownNameError` for what no game can have."""

    ruleset: str = "standard"
    """One of `RULESETS`."""
    map: str = "standard"
    """A name in `MAP_IDS`: what places snakes, food and hazards."""
    food_spawn_chance: int = 15
    """Percent, 0 to 100. As in the official engine a food really appears in (chance - 1) % of turns."""
    minimum_food: int = 1
    """Food is filled up to this number after every turn."""
    hazard_damage: int = 14
    """Health that a hazard layer costs a turn, -1000 to 1000; negative heals."""
    shrink_every_n_turns: int = 25
    """Turns between two moves of a royale wall; other maps use it as their own period."""
    solo: bool = False
    """Play on until no snake is left, whatever the ruleset."""

    def __post_init__(self) -> None:
        if self.ruleset not in RULESETS:
            raise UnknownNameError("ruleset", self.ruleset, RULESETS)
        if self.map not in MAP_IDS:
            raise UnknownNameError("map", self.map, MAP_IDS)
        for name, low, high in (
            ("food_spawn_chance", 0, 100),
            ("minimum_food", 0, 625),
            ("hazard_damage", -1000, 1000),
            ("shrink_every_n_turns", 0, 1 << 30),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise ConfigError(f"{name} is {value!r}; it must be an integer from {low} to {high}")
        if self.ruleset == "royale" and self.shrink_every_n_turns < 1:
            raise ConfigError(f"shrink_every_n_turns is {self.shrink_every_n_turns}; ruleset royale needs 1 or more")

    def rules(self, width: int, height: int) -> Rules:
        """The kernels' form of these settings."""
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
