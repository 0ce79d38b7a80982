"""Regret matching for positions in which all move at once: a player plays each move in proportion
to its regret.

The regret of a move is how much more it would have brought so far than what was played. If both
players of a zero-sum game do this, their average strategies tend to an equilibrium, while upper
bounds may settle on a move that can be answered. After Lanctot, Lisý, Winands, "Monte Carlo Tree
Search in Simultaneous Move Games with Applications to Goofspiel", 2014, and Tak, Lanctot, Winands,
"Monte Carlo Tree Search Variants for Simultaneous Move Games", 2014."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envs.battlesnake.jit import kernel

_CURIOSITY = 0.1


class Regrets(NamedTuple):
    """What P players learn of one position. A joint move is a number to the base 4 whose digit p is
    player p's move.
    """

    regret: np.ndarray
    """float64 (P, 4): how much better it would have been to play this move all the time."""
    strategy: np.ndarray
    """float64 (P, 4): the sum of the strategies so far; its shares are the average strategy."""
    total: np.ndarray
    """float64 (4**P, P): the sum of the values that a joint move came to."""
    tries: np.ndarray
    """int64 (4**P,): how often a joint move was tried."""


def new_regrets(players: int) -> Regrets:
    """Allocate the statistics for so many players."""
    joint = 4**players
    return Regrets(
        np.zeros((players, 4)),
        np.zeros((players, 4)),
        np.zeros((joint, players)),
        np.zeros(joint, np.int64),
    )


@kernel
def forget(g: Regrets) -> None:
    """Clear the statistics."""
    g.regret[:] = 0
    g.strategy[:] = 0
    g.total[:] = 0
    g.tries[:] = 0


@kernel
def match_regret(g: Regrets, prior: np.ndarray, p: int, uniform: float) -> int:
    """Draw a move of player p by its current strategy, and add that strategy to the average.
    `uniform`, in [0, 1), is the draw.

    The strategy gives each move its share of the positive regrets; as long as there are none, all
    moves are equal. One draw in ten is even in any case. Moves without a prior are left out:
    `prior` (N, P, 4) is that of a tree whose node 0 is the position."""
    regrets = 0.0
    count = 0
    for move in range(4):
        if prior[0, p, move] > 0:
            regrets += max(0.0, g.regret[p, move])
            count += 1
    drawn_move = 0
    for move in range(4):
        if prior[0, p, move] > 0:
            if regrets > 0:
                share = max(0.0, g.regret[p, move]) / regrets
            else:
                share = 1.0 / count
            g.strategy[p, move] += share
            if uniform >= 0:
                drawn_move = move
            uniform -= (1 - _CURIOSITY) * share + _CURIOSITY / count
    return drawn_move


@kernel
def learn_regret(
    g: Regrets, prior: np.ndarray, players: int, joint: int, values: np.ndarray, b: int
) -> None:
    """Update the regrets after a joint move came to `values[b]`, by the mean of what each other
    joint move came to so far.
    """
    g.tries[joint] += 1
    for p in range(players):
        g.total[joint, p] += values[b, p]
        taken = joint >> (2 * p) & 3
        for move in range(4):
            instead = joint + ((move - taken) << (2 * p))
            if move != taken and prior[0, p, move] > 0 and g.tries[instead]:
                g.regret[p, move] += g.total[instead, p] / g.tries[instead] - values[b, p]
