"""Snakes that look ahead on the engine's own rules.

A letter means the same in all kernels of this room:

| letter | type | what it is |
|---|---|---|
| `s` | `Boards` | the boards, of which board 0 is searched |
| `r` | `Rules` | the rules |
| `u` | `Turns` | what is needed to take turns back |
| `x` | `Stack` | alpha-beta's own stack |
| `t` | `Tree` | the tree of MCTS |
| `g` | `Regrets` | what the root of MCTS learns by regret matching |
| `f` | `Territory` | the territory fill and its results |
| `w` | `Weights` | the weights of the evaluation |
| `c` | `Correction` | the learned evaluation |
| `i`, `j`, `me` | int | slots of snakes |
| `p` | int | a place among the snakes that are searched |
| `b` | int | a simulation of MCTS |
"""

from agents.search.alphabeta import AlphaBeta
from agents.search.mcts import MCTS

__all__ = ["MCTS", "AlphaBeta"]
