"""The opponents of a learning snake in the Gymnasium environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from envs.battlesnake.safety import safe_moves
from envs.battlesnake.state import State
from envs.common.errors import ConfigError

Opponent = Any
"""An object with `act_batch(state, boards, slots) -> moves int8 (n,)` (`agents.Agent`), or a
function with that signature.
"""


class RandomSafely:
    """Draws evenly among the moves that are not certain death, by the generator that `random`
    returns.
    """

    name = "random"

    def __init__(self, random: Callable[[], np.random.Generator]) -> None:
        self._random = random

    def act_batch(self, state: State, boards: np.ndarray, slots: np.ndarray) -> np.ndarray:
        safe = safe_moves(state, boards, slots)
        return np.argmax(self._random().random(safe.shape) * safe, axis=1).astype(np.int8)


def seated(
    opponents: Opponent | Sequence[Opponent] | None, seats: int, *, default: Opponent
) -> list[Opponent]:
    """Return the opponent of each seat. A single opponent takes all seats; without opponents,
    `default` does.

    Raises `ConfigError` if the number of opponents is wrong, or one can't play.
    """
    if opponents is None:
        opponents = default
    if not isinstance(opponents, Sequence):
        opponents = [opponents] * seats
    if len(opponents) != seats:
        raise ConfigError(
            f"{len(opponents)} opponents for {seats} seats; num_snakes counts the learning snake"
            " too"
        )
    for opponent in opponents:
        if not callable(getattr(opponent, "act_batch", opponent)):
            raise ConfigError(
                f"opponent {opponent!r} can't play: it has no act_batch and is not a function"
            )
    return list(opponents)


def moves_of(opponent: Opponent, state: State, boards: np.ndarray, slot: int) -> np.ndarray:
    """Return the moves, int8 (n,), of an opponent in `slot` of each of `boards`, int64 (n,)."""
    act: Any = getattr(opponent, "act_batch", opponent)
    moves: np.ndarray = act(state, boards, np.full(len(boards), slot))
    return moves


def name_of(opponent: Opponent) -> str:
    """Return the name that pictures show."""
    return str(
        getattr(opponent, "name", None) or getattr(opponent, "__name__", type(opponent).__name__)
    )
