"""Fallback when the search proves a loss: the best response to the policy's prediction of the
nearest opponent.

The search assumes that the others know my move. In truth all choose at the same time, so a loss
that the search proves isn't certain. The policy predicts what the nearest opponent plays. Each of
my moves is worth the mean over these replies, and the best is played (Carmel and Markovitch,
"Incorporating opponent models into adversary search", AAAI 1996)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from agents.policy import Policy
from agents.search.evaluation.evaluate import SCALE, SURE, WIN
from agents.search.make_unmake import search_rules
from envs.battlesnake.rules import step_board
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, State

Search = Callable[[State, float], int]
"""A search: it takes a position and a share of the remaining budget, and returns the position's
score.
"""

_LEAST_LIKELY = 0.03
"""The least probability of a rival's move, because the policy may be wrong."""
_JUDGED = 0.8
"""What the best evaluation is worth; a proven win is worth 1."""
_A_TURN_LATER = 0.04
"""What a loss is worth more for each turn that it comes later, up to `_LATE` turns."""
_LATE = 10


def best_reply(
    policy: Policy,
    here: State,
    me: int,
    rival: int,
    search: Search,
    *,
    allowed: np.ndarray | None = None,
) -> int | None:
    """Return my move with the best mean over the moves that `policy` predicts for `rival` on board
    0; None if I have no choice.

    `allowed`, bool (4,), are the moves that are open to me; None stands for all. Moves into certain
    death are left out, mine and the rival's. Each of the rival's other moves is given a probability
    of at least 3 %. All other snakes play the move that the policy thinks likeliest."""
    slots = np.arange(here.num_snakes)
    boards = np.zeros_like(slots)
    safe = safe_moves(here, boards, slots)
    is_open = safe[me]
    if allowed is not None:
        is_open = is_open & allowed
    mine = np.flatnonzero(is_open)
    theirs = np.flatnonzero(safe[rival])
    if len(mine) < 2:
        return None
    # Step 1. What will the rival play? All others play the move that seems likeliest.
    probabilities, _ = policy.move_probabilities(here, boards, slots)
    chances = np.maximum(probabilities[rival, theirs], _LEAST_LIKELY)
    moves = probabilities.argmax(axis=1).astype(np.int8)[None]
    # Step 2. Search on from each pair of moves, each with its part of the budget.
    worth = np.zeros(len(mine))
    num_pairs = len(mine) * len(theirs)
    for number, (m, t) in enumerate(np.ndindex(len(mine), len(theirs)), start=1):
        onward = here.copy()
        moves[0, me] = mine[m]
        moves[0, rival] = theirs[t]
        step_board(onward.arrays, 0, search_rules(here.rules), moves)
        worth[m] += chances[t] * _worth(onward, me, search, number / num_pairs)
    # Step 3. Play the move with the best mean.
    return int(mine[worth.argmax()])


def _worth(onward: State, me: int, search: Search, share: float) -> float:
    """Return what a position is worth, from -1, dead at once, to 1, won; a draw is 0.

    A late loss is worth more, because only those who know my moves can bring it about."""
    a = onward.arrays
    if a.cause[0, me] != ALIVE:
        is_draw = a.num_alive[0] == 0
        return 0.0 if is_draw else -1.0
    score = search(onward, share)
    if abs(score) > SURE:
        if score > 0:
            return 1.0
        return -1 + _A_TURN_LATER * min(score + WIN, _LATE)
    return _JUDGED * math.tanh(score / SCALE)
