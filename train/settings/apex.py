"""The settings of distributed prioritised replay (`train.apex`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from envs.common.columns import counted
from train.settings.algorithm import registered
from train.settings.dqn import QSettings
from train.settings.limits import require

if TYPE_CHECKING:
    # Python 3.10's typing doesn't have it.
    from typing_extensions import Self

_ENV_RUNNERS_PER_SHARD = 16
"""The number that one replay shard can serve."""


@registered("apex", trainer="train.apex:APEXConfig")
@dataclass(frozen=True, kw_only=True)
class APEXSettings(QSettings):
    """Distributed prioritised replay: env runners, replay shards and learner each run at their own
    pace.
    """

    needs_env_runners: ClassVar[bool] = True

    epsilon_base: float = 0.4
    """Game i of all N of all env runners explores with probability epsilon_base^(1 +
    epsilon_exponent · i / (N - 1)).
    """
    epsilon_exponent: float = 7.0
    """See `epsilon_base`."""
    num_replay_shards: int = 1
    """Processes that hold the memory; each has its share of the env runners. There are at most as
    many as env runners.
    """
    batches_per_request: int = 4
    """Batches that the learner fetches from a shard at once."""
    weight_push_freq: int = 4
    """Updates between two publications of the network to the env runners."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.algorithm, "epsilon_base", 0.0, 1.0)
        require(self, self.algorithm, "epsilon_exponent", 0.0)
        for name in ("num_replay_shards", "batches_per_request", "weight_push_freq"):
            require(self, self.algorithm, name, 1)

    @property
    def num_receivers(self) -> int:
        return self.num_replay_shards

    def for_env_runners(
        self, num_env_runners: int, *, tuned_for: int, num_games: int
    ) -> tuple[Self, int]:
        """Have enough replay shards, and no more than env runners."""
        least = math.ceil(num_env_runners / _ENV_RUNNERS_PER_SHARD)
        shards = max(1, least, min(self.num_replay_shards, num_env_runners))
        return replace(self, num_replay_shards=shards), num_games

    def _batch_in_words(self) -> str:
        shards = counted(self.num_replay_shards, "shard")
        return f"{super()._batch_in_words()} from {shards} of replay"
