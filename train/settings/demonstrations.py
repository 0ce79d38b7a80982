"""The settings of learning from demonstrations of any origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from train.settings.algorithm import AlgorithmSettings
from train.settings.limits import require


@dataclass(frozen=True, kw_only=True)
class DemonstrationSettings(AlgorithmSettings):
    """Settings shared by imitation of a teacher and cloning of recorded snakes."""

    can_begin_with_weights: ClassVar[bool] = True

    learning_rate: float = 1e-3
    """Step size of Adam at the beginning."""
    anneal_lr: bool = True
    """Let the step size fall to 0 at the end of the budget."""
    train_batch_size: int = 512
    """Lessons in a batch."""
    gamma: float = 0.995
    """Discount factor of the returns that the value head learns, 0..1."""
    vf_coef: float = 0.5
    """Weight of the value loss beside that of the moves."""
    symmetries: bool = True
    """Show each batch a random one of the world's equivalent views (a snake's board mirrored or
    turned).
    """
    bf16: bool | None = None
    """Learn in bfloat16; None: if the hardware is fast at it."""
    num_threads: int | None = None
    """Threads of torch, and of the teacher if there is one; None: all, and torch takes what turns
    out fastest.
    """

    def __post_init__(self) -> None:
        for name in ("train_batch_size", "num_threads"):
            require(self, self.algorithm, name, 1)
        for name in ("learning_rate", "gamma"):
            require(self, self.algorithm, name, 0.0, 1.0)
        require(self, self.algorithm, "vf_coef", 0.0)
