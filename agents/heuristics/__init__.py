"""Hand-written snakes, which are the baselines, and rules from which more of them can be made."""

from agents.heuristics.flood_fill import FloodFill
from agents.heuristics.greedy_food import GreedyFood
from agents.heuristics.random_legal import RandomLegal

__all__ = ["FloodFill", "GreedyFood", "RandomLegal"]
