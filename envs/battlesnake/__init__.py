"""Battlesnake by the official rules. One call advances thousands of boards."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envs.battlesnake.observations import EgocentricPlanes
    from envs.battlesnake.observing.starter_pack import StarterPackObservation
    from envs.battlesnake.plain import map_update, ruleset_step, setup_board
    from envs.battlesnake.rewards import PotentialShaping, Rewards
    from envs.battlesnake.settings import Settings
    from envs.battlesnake.state import State
    from envs.battlesnake.vector_env import BattlesnakeVectorEnv

__all__ = [
    "BattlesnakeVectorEnv",
    "EgocentricPlanes",
    "PotentialShaping",
    "Rewards",
    "Settings",
    "StarterPackObservation",
    "State",
    "map_update",
    "ruleset_step",
    "setup_board",
]

_PLACES = {
    "BattlesnakeVectorEnv": "vector_env",
    "EgocentricPlanes": "observations",
    "PotentialShaping": "rewards",
    "Rewards": "rewards",
    "Settings": "settings",
    "StarterPackObservation": "observing.starter_pack",
    "State": "state",
    "map_update": "plain",
    "ruleset_step": "plain",
    "setup_board": "plain",
}


def __getattr__(name: str) -> Any:
    """Import `name` when it is first asked for: most of these import Numba, which takes half a
    second, and the command line needs only the names of maps and rulesets.
    """
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
