"""Monte Carlo tree search: `agent` has its options and deadlines, `search` the tree that it
grows.
"""

from agents.search.mcts.agent import MCTS

__all__ = ["MCTS"]
