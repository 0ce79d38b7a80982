"""Measures agents: many games at once on the engine, games over HTTP, and the protocol of
Procgen.
"""

from agents.measure.evaluation.battlesnake import (
    STANDARD_OPPONENTS,
    GameResults,
    MatchupScore,
    evaluate,
    opponents_text,
    play_games,
    score,
    table,
    wilson_interval,
)
from envs.battlesnake.state import NOBODY

__all__ = [
    "NOBODY",
    "STANDARD_OPPONENTS",
    "GameResults",
    "MatchupScore",
    "evaluate",
    "opponents_text",
    "play_games",
    "score",
    "table",
    "wilson_interval",
]
