"""Battlesnake by the official rules. One call advances thousands of boards."""

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
