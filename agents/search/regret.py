"""Regret matching where all move at once: each player plays a move as often as it would rather have played it so far.

Of two players who do so in a zero-sum game the average strategies tend to an equilibrium, where upper bounds may settle on a
move that can be answered. After Lanctot, Lisý, Winands, "Monte Carlo Tree Search in Simultaneous Move Games with Applications
to Goofspiel", 2014, and Tak, Lanctot, Winands, "Monte Carlo Tree Search Variants for Simultaneous Move Games", 2014.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake.kernels import kernel

_CURIOSITY = 0.1


class Regrets(NamedTuple):
    """What P players learn of one position. A joint move is the number with player p's move as its digit p, to the base 4."""

    regret: np.ndarray  # float64 (P, 4): how much better it would have been to play this all the time
    strategy: np.ndarray  # float64 (P, 4): sum of the strategies so far; its shares are the average strategy
    total: np.ndarray  # float64 (4**P, P): sum of values
    tries: np.ndarray  # int64 (4**P,)


def new_regrets(players: int) -> Regrets:
    """Nothing learnt yet."""
    joint = 4**players
    return Regrets(np.zeros((players, 4)), np.zeros((players, 4)), np.zeros((joint, players)), np.zeros(joint, np.int64))


@kernel
def forget(g):
    """Start anew."""
    g.regret[:] = 0
    g.strategy[:] = 0
    g.total[:] = 0
    g.tries[:] = 0


@kernel
def match_regret(g, prior, p, uniform):
    """A move of player p, drawn by its strategy of the moment with `uniform` (in [0, 1)), which is added to the average.

    The strategy is the share of each positive regret, even as long as there are none; one draw in ten is even all the same.
    Moves without a prior (`prior` is that of a tree, (N, P, 4), the position its node 0) are none.
    """
    regrets, count = 0.0, 0
    for move in range(4):
        if prior[0, p, move] > 0:
            regrets += max(0.0, g.regret[p, move])
            count += 1
    chosen = 0
    for move in range(4):
        if prior[0, p, move] > 0:
            share = max(0.0, g.regret[p, move]) / regrets if regrets > 0 else 1.0 / count
            g.strategy[p, move] += share
            if uniform >= 0:
                chosen = move
            uniform -= (1 - _CURIOSITY) * share + _CURIOSITY / count
    return chosen


@kernel
def learn_regret(g, prior, players, joint, values, b):
    """A joint move came to `values[b]`: what would each player rather have played, by the mean of what that came to so far?"""
    g.tries[joint] += 1
    for p in range(players):
        g.total[joint, p] += values[b, p]
        taken = joint >> (2 * p) & 3
        for move in range(4):
            instead = joint + ((move - taken) << (2 * p))
            if move != taken and prior[0, p, move] > 0 and g.tries[instead]:
                g.regret[p, move] += g.total[instead, p] / g.tries[instead] - values[b, p]
