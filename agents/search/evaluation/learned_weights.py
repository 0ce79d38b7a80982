"""The weights of a learned evaluation: of the linear sum in each phase of a game, and of the hidden
units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.search.evaluation.learned_features import LARGEST, OWN, SHARED
from envs.common.errors import ProcsnakeError

# A kernel has these constants compiled in. (The word keeps this file in the hash of its cache.)
UNIT = 64
"""Weights are counted in this part of a point."""
INPUT_UNIT = 1 << 14
"""The weights and the bias of a hidden unit are counted in this part of 1."""
FULL = 512
"""The output of a hidden unit lies between 0 and this, which stands for 1."""
LARGEST_SUM = (1 << 31) // LARGEST - 1
"""The largest sum of a phase's absolute weights, and of the hidden units' outputs: up to it, each
of the two sums fits into int32, which is computed fastest.
"""
LARGEST_INPUT = (1 << 15) - 1
"""The largest weight of a hidden unit's input. int16 multiplies twice as many at once as int32."""
LARGEST_BIAS = 1 << 30
"""The largest bias of a hidden unit: beside all inputs at their largest, it fits into int32."""
MOST_UNITS = 64
"""The most hidden units; with as many, a search's node takes an eighth longer."""


class LearnedEvaluationError(ProcsnakeError):
    """A file holds no learned evaluation that this procsnake can read."""


@dataclass(frozen=True, kw_only=True)
class FeatureWeights:
    """A weight for each feature. A feature that isn't named weighs nothing."""

    mine: Mapping[str, int]
    """The weights of my snake's features, by the names of `learned_features.OWN`."""
    theirs: Mapping[str, int]
    """The weights of the other snake's features, likewise."""
    shared: Mapping[str, int]
    """The weights of the pair's features, by the names of `learned_features.SHARED`."""

    @property
    def weights(self) -> list[int]:
        """The weights in the order of `learned_features.write_features`."""
        return [getattr(self, group).get(name, 0) for group, name in _feature_names()]


@dataclass(frozen=True, kw_only=True)
class Phase(FeatureWeights):
    """The linear weights for a part of a game, in 1 / `UNIT` points for each unit of a feature.

    Raises `LearnedEvaluationError` if their absolute values add up to more than `LARGEST_SUM`.
    """

    up_to: int | None
    """The largest sum of both lengths that belongs to the phase; None in the last phase."""

    def __post_init__(self) -> None:
        _refuse_large_sum("the weights of a phase", self.weights)

    @classmethod
    def of(cls, up_to: int | None, weights: Sequence[int]) -> Phase:
        """Return a phase with weights in the order of `learned_features.write_features`."""
        return cls(up_to=up_to, **_by_name(weights))


@dataclass(frozen=True, kw_only=True)
class HiddenUnit(FeatureWeights):
    """One hidden unit of a small network. It has the same weights in all phases.

    Its output, between 0 and 1, is the weighted sum of all features plus `bias`, both in 1 /
    `INPUT_UNIT`, cut off at either end. The weights are at most `LARGEST_INPUT`."""

    bias: int
    """At most `LARGEST_BIAS`, whatever its sign."""
    points: int
    """What the output 1 adds to the score, in 1 / `UNIT` points."""

    @classmethod
    def of(cls, weights: Sequence[int], *, bias: int, points: int) -> HiddenUnit:
        """Return a unit with weights in the order of `learned_features.write_features`."""
        return cls(bias=bias, points=points, **_by_name(weights))


GROUPS = {"mine": OWN, "theirs": OWN, "shared": SHARED}
"""The names of the features in each group of weights."""


def refuse_many_points(units: Sequence[HiddenUnit]) -> None:
    """Raise `LearnedEvaluationError` if the units' `points` add up to more than `LARGEST_SUM`,
    without their signs.
    """
    _refuse_large_sum("the points of the hidden units", [unit.points for unit in units])


def _refuse_large_sum(what: str, weights: Sequence[int]) -> None:
    total = sum(map(abs, weights))
    if total > LARGEST_SUM:
        raise LearnedEvaluationError(
            f"{what} come to {total} without their signs; {LARGEST_SUM} is the most"
        )


def _by_name(weights: Sequence[int]) -> dict[str, dict[str, int]]:
    """Return the weights that aren't 0 by group and name."""
    groups: dict[str, dict[str, int]] = {group: {} for group in GROUPS}
    for (group, name), weight in zip(_feature_names(), weights, strict=True):
        if weight:
            groups[group][name] = int(weight)
    return groups


def _feature_names() -> Iterator[tuple[str, str]]:
    """Yield the group and the name of each feature, in the order of
    `learned_features.write_features`.
    """
    for group, names in GROUPS.items():
        for name in names:
            yield group, name
