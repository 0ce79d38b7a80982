"""The settings of learning from recorded games (`train.cloning`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from train.settings.algorithm import DemonstrationSettings, registered
from train.settings.limits import require


@registered("cloning", trainer="train.cloning:Cloning", uses_ray=False)
@dataclass(frozen=True, kw_only=True)
class CloningSettings(DemonstrationSettings):
    """A network learns what snakes played in recorded games (`train.cloning`). `train --from-games`
    sets the first three.
    """

    checks_start: ClassVar[bool] = True

    games: list[str] = field(default_factory=list)
    """Recordings, or folders of them. Games on other boards than the world's are left out."""
    games_sha256: str | None = None
    """The recordings' hash when the run began. Other games under the same names are refused. With
    None, nothing is compared.
    """
    snakes: list[str] = field(default_factory=list)
    """Whom it clones, by names or ids; with none, the snake for whom each game was recorded."""
    held_out: float = 0.1
    """Share of the games that is never learned from, but measures what was learned."""
    most_decisions: int = 400_000
    """Decisions read at most; one takes as many bytes as the observation. Later games are left
    out.
    """
    num_updates: int = 50
    """Batches between two rows of progress.csv."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("most_decisions", "num_updates"):
            require(self, self.algorithm, name, 1)
        require(self, self.algorithm, "held_out", 0.01, 0.9)
