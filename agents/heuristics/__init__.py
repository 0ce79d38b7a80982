"""Hand-written snakes as baselines, and rules for making more of them."""

from agents.heuristics.flood_fill import FloodFill
from agents.heuristics.greedy_food import GreedyFood
from agents.heuristics.random_legal import RandomLegal

__all__ = ["FloodFill", "GreedyFood", "RandomLegal"]
