"""What is tuned, by how many games, and with which effort: kept in a store beside the games."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from agents.sprt.settings import Sprt
from agents.tuning.parameters import Parameter
from envs.common.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Tuning(Sprt):
    """A tuning by SPSA. Its two players are the sides of a pair, "plus" and "minus", whose options change from pair to pair.

    Its `hypotheses` are those of the test that has to accept what it finds. Raises `ConfigError` for what can't be played.
    """

    kind = "tuning"

    parameters: tuple[Parameter, ...] = ()
    pairs: int = 1000
    """Pairs of games in all; fishtest calls them iterations."""
    batch: int = 8
    """Pairs that are moved from one state of the parameters, as if by so many workers. Games side by side need them."""

    def __post_init__(self) -> None:
        if self.seats != 2:
            raise ConfigError(
                f"a tuning is by duels, not by games of {self.seats} snakes; the test of what it finds can have more"
            )
        for name in ("pairs", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.book and len(self.book) < self.pairs:
            raise ConfigError(f"the book has {len(self.book)} openings for {self.pairs} pairs")
        super().__post_init__()

    @property
    def player(self) -> str:
        """Whose options are tuned, as `agents.make` takes it."""
        return self.players[0].spec

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Tuning:
        found = super().from_dict({**data, "parameters": tuple(Parameter(**one) for one in data["parameters"])})
        assert isinstance(found, cls)
        return found

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "parameters": [asdict(one) for one in self.parameters]}
