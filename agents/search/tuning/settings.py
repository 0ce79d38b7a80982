"""Describes a tuning: what is tuned, by how many games, and at which effort. A store keeps it
beside the games.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agents.measure.sprt.settings import FIRST, SECOND, Sprt
from agents.search.tuning.parameters import Parameter
from envs.common.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Tuning(Sprt):
    """A tuning by SPSA. Its two players are the sides of a pair, "plus" and "minus", whose options
    change from pair to pair.

    It has no use for its `hypotheses`: the test that has to accept what it finds has its own.
    Raises `ConfigError` for what can't be played."""

    kind = "tuning"

    parameters: tuple[Parameter, ...] = ()
    pairs: int = 1000
    """The number of pairs of games in all. Fishtest calls them iterations."""
    batch: int = 8
    """The number of pairs that start from the same parameters, as if so many workers played them,
    so that games can be played side by side."""

    def __post_init__(self) -> None:
        if self.seats % 2:
            raise ConfigError(
                f"tuning games have 2 or 4 snakes, half of them on each side, not {self.seats}"
            )
        for name in ("pairs", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.book and len(self.book) < self.pairs:
            raise ConfigError(f"the book has {len(self.book)} openings for {self.pairs} pairs")
        super().__post_init__()

    def sides_of(self, rotation: int) -> tuple[int, ...]:
        """Return the side of each slot in one game of a pair, `FIRST` or `SECOND`. Among four, they
        sit by turns.
        """
        return tuple((FIRST, SECOND)[(slot + rotation) % 2] for slot in range(self.seats))

    def values_by_name(self, theta: np.ndarray) -> dict[str, int | float]:
        """Return the values of the parameters, (P,), by name, as the options take them."""
        pairs = zip(self.parameters, theta, strict=True)
        return {parameter.name: parameter.plain(value) for parameter, value in pairs}

    @property
    def player(self) -> str:
        """The player whose options are tuned, as `agents.make` takes it."""
        return self.players[0].spec

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Tuning:
        parameters = tuple(Parameter(**one) for one in data["parameters"])
        tuning = super().from_dict({**data, "parameters": parameters})
        assert isinstance(tuning, cls)
        return tuning

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "parameters": [asdict(one) for one in self.parameters]}
