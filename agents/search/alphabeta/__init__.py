"""Alpha-beta search: `agent` has its options and deadlines, `search` the tree that it walks."""

from agents.search.alphabeta.agent import AlphaBeta

__all__ = ["AlphaBeta"]
