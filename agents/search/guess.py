"""What to play where a search sees me die soon: it lets the others know my move, but they don't, so I can still guess theirs.

A turn is a game in which all choose at once. The policy says what the nearest other is likely to play; each of my moves is
worth the mean of what follows, and the best is played: the best reply to a model of the opponent (Carmel and Markovitch,
"Incorporating opponent models into adversary search", AAAI 1996).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from agents.policy import Policy
from agents.search.judgement import SCALE, SURE, WIN
from agents.search.turns import search_rules
from envs.battlesnake.rules import step_board
from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import ALIVE, State

Search = Callable[[State, float], int]
"""The score of a position, searched until that share of what is left of the budget is spent."""

_LEAST_LIKELY = 0.03
_JUDGED = 0.8
_A_TURN_LATER, _LATE = 0.04, 10


def best_reply(policy: Policy, here: State, me: int, rival: int, search: Search) -> int | None:
    """My move with the best mean over the moves that `policy` expects of `rival` on board 0; None if I have no choice.

    Certain deaths are no moves of either. The others make the move that the policy thinks likeliest. No move of the rival's is
    taken to be less likely than 3 %.
    """
    slots = np.arange(here.num_snakes)
    boards = np.zeros_like(slots)
    safe = safe_moves(here, boards, slots)
    mine, theirs = np.flatnonzero(safe[me]), np.flatnonzero(safe[rival])
    if len(mine) < 2:
        return None
    likely, _ = policy.move_probabilities(here, boards, slots)
    expected = np.maximum(likely[rival, theirs], _LEAST_LIKELY)
    moves = likely.argmax(axis=1).astype(np.int8)[None]
    worth = np.zeros(len(mine))
    for place, (m, t) in enumerate(np.ndindex(len(mine), len(theirs)), start=1):
        onward = here.copy()
        moves[0, me], moves[0, rival] = mine[m], theirs[t]
        step_board(onward.arrays, 0, search_rules(here.rules), moves)
        worth[m] += expected[t] * _worth(onward, me, search, place / (len(mine) * len(theirs)))
    return int(mine[worth.argmax()])


def _worth(onward: State, me: int, search: Search, share: float) -> float:
    """From -1, dead at once, to 1, won; a draw is 0. A late loss is worth more: it is one to those who know my moves only."""
    a = onward.arrays
    if a.cause[0, me] != ALIVE:
        return -1.0 if a.num_alive[0] else 0.0
    score = search(onward, share)
    if abs(score) > SURE:
        return 1.0 if score > 0 else -1 + _A_TURN_LATER * min(score + WIN, _LATE)
    return _JUDGED * math.tanh(score / SCALE)
