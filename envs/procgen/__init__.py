"""Procgen's sixteen games, with the interface that all worlds have."""

from envs.procgen.games import GAMES, MODES
from envs.procgen.levels import Levels, require_disjoint

__all__ = ["GAMES", "MODES", "Levels", "require_disjoint"]
