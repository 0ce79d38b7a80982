"""Works out how a snake died if the file doesn't say, as in files of the official command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np

from envs.battlesnake.plain import Board, living_snakes, state_from_board
from envs.battlesnake.plain.board import UNKNOWN_CAUSE
from envs.battlesnake.recording.boards import moves_between
from envs.battlesnake.rules import step_board
from envs.battlesnake.settings import Settings
from envs.battlesnake.state import (
    ALIVE,
    CAUSE_NAMES,
    HAZARD,
    HEAD_COLLISION,
    MOVE_NAMES,
    OUT_OF_HEALTH,
)
from envs.common.errors import InvalidStateError

_MAX_UNSEEN = 3
_STRAIGHT_ON = -1
_LIKELIEST = (OUT_OF_HEALTH, HEAD_COLLISION, HAZARD)
"""Hunger can't be avoided on the last turn, and a head-on can't be foreseen. Few run into anything
of their own will.
"""


def likely_cause(before: Board, after: Board, snake: str, settings: Settings) -> str:
    """Return how the snake with this id died between two consecutive boards, in the official
    engine's words.

    The survivors' moves are read off their heads. For the snake and up to three others that died,
    all moves are tried; moves that leave other survivors than the second board can't have been
    played. The result is `UNKNOWN_CAUSE` if no moves explain the death."""
    survivors = {one["id"] for one in living_snakes(after)}
    living = living_snakes(before)
    moves = {
        one: move["move"] for one, move in moves_between(before, after).items() if one in survivors
    }
    fates: Counter[int] = Counter()
    for causes in _outcomes({**before, "snakes": living}, moves, snake, settings):
        outcome = dict(zip([one["id"] for one in living], causes, strict=True))
        if {one for one, cause in outcome.items() if cause == ALIVE} == survivors:
            fates[outcome[snake]] += 1
    expected = next((cause for cause in _LIKELIEST if fates[cause]), None)
    if expected is None and fates:
        expected = fates.most_common(1)[0][0]
    if expected is None:
        return UNKNOWN_CAUSE
    return CAUSE_NAMES[expected]


def _outcomes(
    before: Board, moves: dict[str, str], snake: str, settings: Settings
) -> Iterator[list[int]]:
    """Yield the causes of death by slot after each choice of the moves that aren't known.

    `ALIVE` stands for a survivor. Nothing is yielded for a board that no game can have.
    """
    ids = [one["id"] for one in before["snakes"]]
    try:
        state = state_from_board(before, settings=settings)
    except InvalidStateError:
        return
    # The walls and the end of the game don't matter here.
    rules = state.rules._replace(royale=False, solo=True)
    unseen = [one for one in ids if one not in moves and one != snake][:_MAX_UNSEEN]
    all_moves = np.full((1, len(ids)), _STRAIGHT_ON, np.int8)
    for one, move in moves.items():
        all_moves[0, ids.index(one)] = MOVE_NAMES.index(move)
    slots = [ids.index(one) for one in [snake, *unseen]]
    for attempt in product(range(len(MOVE_NAMES)), repeat=len(slots)):
        all_moves[0, slots] = attempt
        next_state = state.copy()
        step_board(next_state.arrays, 0, rules, all_moves)
        yield next_state.arrays.cause[0].tolist()
