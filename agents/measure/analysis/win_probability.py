"""Turns a search's score into a probability of winning, by a logistic curve that was fitted to the
results of recorded games.

`WinProbability.shipped()` reads `win_probability.json`, which says how it was made;
`agents.measure.analysis.fitting` makes such files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from agents.search.evaluation.evaluate import SURE
from envs.common.errors import ConfigError, reason
from envs.common.strangers.bounded import parse_json, read_text
from envs.common.whole_files import write_whole

GROUPS = ("duel", "2", "3", "4")
"""The kinds of positions that have curves of their own: duels that the learned evaluation scores,
and others by the number of living snakes. Positions of more than four snakes have the curve of
four."""
EVALUATION = "duel-units"
"""The learned evaluation by which duels are analysed: their curve is fitted to its scores."""
_SHIPPED = Path(__file__).with_name("win_probability.json")
_VERSION = 1
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The probability of winning as a function of the score s: 1 / (1 + exp(-(offset + s /
    scale))), unless s is proven.
    """

    scale: float
    """In points of the evaluation, above 0."""
    offset: float
    """The logit of an even position. A search that expects the worst scores even positions below
    0.
    """
    proven_loss: float
    """The share of games that were won from positions that the search had proven lost, from 0 to
    1.
    """
    proven_win: float
    """The share of games that were won from positions that the search had proven won."""

    def __post_init__(self) -> None:
        shares = (self.proven_loss, self.proven_win)
        if not (
            0 < self.scale < math.inf
            and math.isfinite(self.offset)
            and all(0 <= share <= 1 for share in shares)
        ):
            raise ConfigError(
                f"{self} is invalid: the scale must be above 0, and shares between 0 and 1"
            )

    def __call__(self, score: int) -> float:
        """Return the probability of winning, from 0 to 1. It is never below that of a proven
        loss.
        """
        if score < -SURE:
            return self.proven_loss
        if score > SURE:
            return self.proven_win
        logit = max(-700.0, min(700.0, self.offset + score / self.scale))
        return max(self.proven_loss, 1 / (1 + math.exp(-logit)))


@dataclass(frozen=True)
class WinProbability:
    """The curves by group, with a record of how they were fitted."""

    curves: Mapping[str, Curve]
    """By the names of `GROUPS`; every group has one."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How the curves were fitted, in JSON's types. Nothing is computed from it."""

    def __call__(self, score: int, *, snakes: int, is_learned: bool) -> float:
        """Return the probability of winning for a score where so many `snakes` are alive.

        `is_learned` says that the learned evaluation of duels was used (`MoveSearch.is_learned`).
        """
        return self.curves[group_of(snakes, is_learned)](score)

    @classmethod
    @cache
    def shipped(cls) -> WinProbability:
        """Return the curves that come with procsnake."""
        return cls.read(_SHIPPED)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> WinProbability:
        """Read what `write` has written. Raises `ConfigError` for anything else."""
        try:
            data = parse_json(read_text(Path(path), _MAX_BYTES))
            if data["procsnake_win_probability"] != _VERSION:
                raise ValueError(f"this procsnake reads version {_VERSION}")
            return cls(
                {group: Curve(**data["curves"][group]) for group in GROUPS},
                data.get("training", {}),
            )
        except (OSError, ValueError, TypeError, KeyError, ConfigError) as error:
            raise ConfigError(
                f"{path} holds no curves of win probability: {type(error).__name__}"
                f" {reason(error)}. procsnake analyse --fit writes such files"
            ) from error

    def write(self, path: Path) -> None:
        """Write the file as JSON. Raises `ConfigError` if it can't be written."""
        curves = {group: asdict(curve) for group, curve in self.curves.items()}
        data = {
            "procsnake_win_probability": _VERSION,
            "curves": curves,
            "training": dict(self.training),
        }
        write_whole(path, json.dumps(data, indent=1) + "\n")


def group_of(snakes: int, is_learned: bool) -> str:
    """Return the group of `GROUPS` to which a position belongs, by the number of living snakes."""
    if is_learned:
        return "duel"
    return str(max(2, min(4, snakes)))
