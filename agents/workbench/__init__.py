"""A bench for people who write snakes: arrange a board, play from it, and look at every turn. Needs
the extra `notebooks`.
"""

from agents.workbench.bench import Bench, BenchTurn, Seen

__all__ = ["Bench", "Seen", "BenchTurn"]
