"""Snakes that look ahead, on the engine's own rules."""

from agents.search.alphabeta import AlphaBeta
from agents.search.mcts import MCTS

__all__ = ["MCTS", "AlphaBeta"]
