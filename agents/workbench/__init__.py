"""A bench for those who write snakes: arrange a board, play on from it, and look at every turn. Needs the extra `notebooks`."""

from agents.workbench.bench import Bench, Seen, Turn

__all__ = ["Bench", "Seen", "Turn"]
