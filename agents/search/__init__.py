"""Snakes that look ahead on the engine's own rules.

The kernels of this package share the names of their arguments: `s` is a `Boards`, whose board 0 is
searched; `r` the `Rules`; `x` a `Stack` (alpha-beta), or the array of features in `features`; `t` a
`Tree` (MCTS), or the number of a turn in `make_unmake`; `u` a `Turns`; `f` a `Territory`; `w` the
`Weights`; `c` the `Correction` of a learned evaluation; `g` a `Regrets` (MCTS), or a `Geometry` in
`features`; `i` and `me` are slots."""

from agents.search.alphabeta import AlphaBeta
from agents.search.mcts import MCTS

__all__ = ["MCTS", "AlphaBeta"]
