"""The hidden units of a learned evaluation in the arrays that a search reads, and the kernel that
computes with them.

All is computed in whole numbers, so that every machine comes to the same score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.search.evaluation.learned_features import NUM_FEATURES
from agents.search.evaluation.learned_weights import FULL, INPUT_UNIT, HiddenUnit
from envs.battlesnake.jit import kernel

_WIDTH = 64
"""57 features and seven zeros, because 64 numbers of 16 bits fill whole registers."""
_SHIFT = (INPUT_UNIT // FULL).bit_length() - 1
"""A sum in 1 / `INPUT_UNIT`, shifted right by so many bits, is an output in 1 / `FULL`, rounded
down.
"""


class HiddenUnits(NamedTuple):
    """The units of one search, which it doesn't share with others."""

    features: np.ndarray
    """int16 (64,): scratch, of which the last entries stay 0."""
    weights: np.ndarray
    """int16 (N, 64): in 1 / `INPUT_UNIT`."""
    bias: np.ndarray
    """int32 (N,): in 1 / `INPUT_UNIT`."""
    points: np.ndarray
    """int32 (N,): in 1 / `UNIT` points."""
    activations: np.ndarray
    """int32 (N,): scratch."""


def new_hidden_units(units: Sequence[HiddenUnit]) -> HiddenUnits | None:
    """Return the arrays of these units. Without any it is None, for which Numba compiles a search
    that knows nothing of hidden units: asking for their number took 8 % of a linear search's time.
    """
    if not units:
        return None
    weights = np.zeros((len(units), _WIDTH), np.int16)
    weights[:, :NUM_FEATURES] = [unit.weights for unit in units]
    return HiddenUnits(
        features=np.zeros(_WIDTH, np.int16),
        weights=weights,
        bias=np.array([unit.bias for unit in units], np.int32),
        points=np.array([unit.points for unit in units], np.int32),
        activations=np.zeros(len(units), np.int32),
    )


@kernel
def add_up(units: HiddenUnits | None, features: np.ndarray) -> int:
    """Return what the units add to the score of a position with these features (F,), in 1 / `UNIT`
    points.
    """
    if units is None:
        return 0
    for n in range(NUM_FEATURES):
        units.features[n] = features[n]
    # In int32 from end to end: sixteen products per instruction.
    for unit in range(len(units.bias)):
        activation = units.bias[unit]
        for n in range(_WIDTH):
            product = np.int32(np.int32(units.weights[unit, n]) * np.int32(units.features[n]))
            activation = np.int32(activation + product)
        units.activations[unit] = activation
    # In a loop of its own, cutting off needs no jump, which would often be mispredicted.
    total = np.int32(0)
    for unit in range(len(units.bias)):
        output = np.int32(units.activations[unit] >> _SHIFT)
        output = max(np.int32(0), min(np.int32(FULL), output))
        total = np.int32(total + np.int32(output * units.points[unit]))
    return int(total) // FULL
