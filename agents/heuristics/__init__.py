"""Hand-written snakes: the honest baselines. Rules to make more of them: `composition`, `rules`."""

from agents.heuristics.flood_fill import FloodFill
from agents.heuristics.greedy_food import GreedyFood
from agents.heuristics.random_legal import RandomLegal

__all__ = ["FloodFill", "GreedyFood", "RandomLegal"]
