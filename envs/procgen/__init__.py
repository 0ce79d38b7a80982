"""Procgen's sixteen games behind the interface of all worlds."""

from envs.procgen.games import GAMES, MODES
from envs.procgen.levels import Levels, require_disjoint

__all__ = ["GAMES", "MODES", "Levels", "require_disjoint"]
