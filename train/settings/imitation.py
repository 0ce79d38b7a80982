"""The settings of learning from a teacher (`train.imitation`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from envs.common.errors import ConfigError
from train.settings.algorithm import DemonstrationSettings, registered
from train.settings.limits import require, require_schedule
from train.settings.schedule import Knots


@registered("imitation", trainer="train.imitation:Imitation", uses_ray=False)
@dataclass(frozen=True, kw_only=True)
class ImitationSettings(DemonstrationSettings):
    """A network learns what a teacher would play (`train.imitation`)."""

    checks_start: ClassVar[bool] = True

    teacher: str = "alphabeta"
    """Whom it imitates, as `agents.make` knows it: a search, a heuristic, a rule file, another
    policy.
    """
    teacher_options: dict[str, Any] = field(default_factory=dict)
    """The teacher's own options, e.g. nodes for a search."""
    temperature: float | None = None
    """With it lessons are soft, and alphabeta must be the teacher: its nodes are shared among the
    moves, and each move is learned in proportion to exp(score / temperature). Without it, only the
    teacher's move is learned."""
    value_share: float = 0.0
    """The share of the search's score in what the value head learns, 0..1, if there is a
    temperature. The return has the rest, and the score counts alone where an episode was cut
    off."""
    num_steps: int = 32
    """Steps of every game between two rows of progress.csv."""
    replay_ratio: float = 5.0
    """Lessons learned from for each one that the teacher gave."""
    replay_capacity: int = 1_000_000
    """Lessons remembered, a batch at least; one takes as many bytes as the observation."""
    beta: float | Knots = 0.25
    """Probability that the teacher's move is played instead of the network's, a number or knots
    over agent steps.
    """
    explore: float = 0.3
    """Share of the network's moves that are drawn from its probabilities; the others are its
    likeliest.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.algorithm, "num_steps", 1)
        if self.replay_capacity < self.train_batch_size:
            raise ConfigError(
                f"imitation.replay_capacity is {self.replay_capacity}, less than a batch of"
                f" {self.train_batch_size}, so nothing would be learned; raise it, or lower"
                " imitation.train_batch_size"
            )
        for name in ("explore", "value_share"):
            require(self, self.algorithm, name, 0.0, 1.0)
        require(self, self.algorithm, "temperature", 1.0)
        if self.value_share and self.temperature is None:
            raise ConfigError(
                f"imitation.value_share is {self.value_share}, but there are scores only with a"
                " temperature; set imitation.temperature=50, for instance"
            )
        require(self, self.algorithm, "replay_ratio", 0.0)
        require_schedule(self, self.algorithm, "beta", 1.0)
