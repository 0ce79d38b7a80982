"""A learned evaluation in the arrays that a search reads, and the kernel that computes with
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agents.search.evaluation.hidden_units import HiddenUnits, add_up, new_hidden_units
from agents.search.evaluation.learned import MOST, LearnedEvaluation
from agents.search.evaluation.learned_features import (
    NUM_FEATURES,
    Geometry,
    geometry_of,
    write_features,
)
from agents.search.evaluation.learned_weights import UNIT
from agents.search.evaluation.territory import Territory
from envs.battlesnake.jit import kernel
from envs.battlesnake.settings import Rules
from envs.battlesnake.state import Boards, State

_ENDLESS = 1 << 30
"""The end of the last phase: no two snakes are so long."""


class Correction(NamedTuple):
    """A learned evaluation as a search uses it, with P phases and F features; P is 0 without one.
    It belongs to one search at a time.
    """

    is_used: np.ndarray
    """bool (1,): whether the present search uses it."""
    up_to: np.ndarray
    """int64 (P,): the largest sum of lengths of each phase."""
    weights: np.ndarray
    """int32 (P, F): in parts of a point, of which a point has `UNIT`."""
    features: np.ndarray
    """int32 (F,): scratch."""
    geometry: Geometry
    hidden: HiddenUnits | None


def new_correction(
    state: State, territory: Territory, learned: LearnedEvaluation | None
) -> Correction:
    """Return the arrays of `learned` for boards of this state's shape, not yet in use."""
    phases = learned.phases if learned else ()
    weights = np.array([phase.weights for phase in phases], np.int32)
    up_to = np.array([phase.up_to or _ENDLESS for phase in phases], np.int64)
    return Correction(
        is_used=np.zeros(1, np.bool_),
        up_to=up_to,
        weights=weights.reshape(len(phases), NUM_FEATURES),
        features=np.zeros(NUM_FEATURES, np.int32),
        geometry=geometry_of(state, territory),
        hidden=new_hidden_units(learned.units if learned else ()),
    )


@kernel
def correct(s: Boards, r: Rules, f: Territory, c: Correction, me: int) -> int:
    """Return the points that the learned evaluation adds on board 0, a duel that `fill_words` has
    filled for `me`.
    """
    write_features(s, r, f, c.geometry, c.features, me)
    lengths = s.length[0, f.order[0]] + s.length[0, f.order[1]]
    phase = 0
    total = np.int32(0)
    while lengths > c.up_to[phase]:
        phase += 1
    # In int32 from end to end: eight products per instruction. Numba would go on in int64, which
    # takes twice the time.
    for n in range(NUM_FEATURES):
        total = np.int32(total + np.int32(c.weights[phase, n] * c.features[n]))
    points = (int(total) + add_up(c.hidden, c.features)) // UNIT
    return min(MOST, max(-MOST, points))
