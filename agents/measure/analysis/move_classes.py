"""Classes of moves, by the points that they are expected to cost. Only this file defines the
thresholds.

A point is a hundredth of a won game: the win probability of the best move, less that of the move
that was played, in percent."""

from __future__ import annotations

from typing import Literal

MoveClass = Literal["best", "good", "inaccuracy", "mistake", "blunder", "forced", "unknown"]
COSTS: tuple[tuple[float, MoveClass], ...] = (
    (1.0, "best"),
    (5.0, "good"),
    (10.0, "inaccuracy"),
    (20.0, "mistake"),
)
"""Each class with the points below which a move belongs to it. What costs more than all of these is
a blunder.
"""
FAULTS: tuple[MoveClass, ...] = ("inaccuracy", "mistake", "blunder")
"""The classes that a report counts as faults, the lightest first."""


def class_of(points: float, *, choices: int) -> MoveClass:
    """Return the class of a move that costs so many points, where `choices` moves weren't certain
    death.

    A move is forced if it is the only one that isn't certain death, or if all are.
    """
    if points < COSTS[0][0] and choices < 2:
        return "forced"
    return next((name for limit, name in COSTS if points < limit), "blunder")
