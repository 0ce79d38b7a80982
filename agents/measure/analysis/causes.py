"""Names the cause of a snake's death in everyday words, from the last board and the snake's moves
there.
"""

from __future__ import annotations

from typing import Literal, get_args

from agents.measure.analysis.game import Analysis
from agents.measure.analysis.move_classes import FAULTS

Cause = Literal["no room", "head-on", "hunger", "hazard", "crash", "unknown"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
CAUSE_TEXTS: dict[Cause, str] = {
    "no room": "it ran out of room: every move on its last turn was certain death",
    "head-on": "it met a head of a snake that was as long or longer",
    "hunger": "its health ran out",
    "hazard": "a hazard took the rest of its health",
    "crash": "it ran into a wall or a body although it had another move",
    "unknown": "the recording doesn't say how it died",
}
"""What each cause means."""
_CRASHES = ("wall-collision", "snake-collision", "snake-self-collision")


def cause_of(analysis: Analysis) -> Cause | None:
    """Return how the snake died; None if it lived."""
    death = analysis.game.death
    if death is None:
        return None
    if death.cause == "head-collision":
        return "head-on"
    if death.cause == "out-of-health":
        return "hunger"
    if death.cause == "hazard":
        return "hazard"
    if not any(analysis.turns[-1].safe):
        return "no room"
    return "crash" if death.cause in _CRASHES else "unknown"


def faults(analysis: Analysis) -> dict[str, int]:
    """Return how many inaccuracies, mistakes and blunders the snake made."""
    classes = [turn.move_class for turn in analysis.turns]
    return {name: classes.count(name) for name in FAULTS}
