"""What acts: heuristics, trained policies, and how to measure them. torch is imported only where a network is built."""

from agents.agent import Agent, Decision
from agents.registry import make, names, register

__all__ = ["Agent", "Decision", "make", "names", "register"]
