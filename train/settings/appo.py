"""The settings of asynchronous PPO (`train.appo`)."""

from __future__ import annotations

from dataclasses import dataclass

from envs.common.errors import ConfigError
from train.settings.algorithm import registered
from train.settings.limits import require
from train.settings.ppo import PPOSettings


@registered("appo", trainer="train.appo:APPOConfig")
@dataclass(frozen=True, kw_only=True)
class APPOSettings(PPOSettings):
    """Asynchronous PPO: env runners play on while the learner learns, and V-trace corrects for
    their older weights.
    """

    max_lag: int = 8
    """About how many updates, at most, lie between the weights that played a fragment and those
    that learn from it. Env runners wait if there would be more."""
    fragments_per_batch: int | None = None
    """Fragments in a batch. With None, so many that every env runner can have two requests: 2 ·
    num_env_runners / max_lag.
    """
    rho_clip: float = 1.0
    """Largest ratio of new to old probability by which a decision counts (the paper's ρ̄), above
    0.
    """
    c_clip: float = 1.0
    """Largest ratio by which what comes after a decision counts for it (the paper's c̄)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.algorithm, "max_lag", 1)
        require(self, self.algorithm, "fragments_per_batch", 1)
        require(self, self.algorithm, "c_clip", 0.0)
        if not self.rho_clip > 0:
            raise ConfigError(
                f"{self.algorithm}.rho_clip is {self.rho_clip!r}, by which no decision counts; the"
                " paper has 1"
            )
        if self.lstm_units:
            raise ConfigError(
                f"{self.algorithm} knows no memory (lstm_units is {self.lstm_units}); ppo does:"
                " algorithm=ppo"
            )
        if self.value_epochs:
            raise ConfigError(
                f"{self.algorithm} has values in the policy's network (value_epochs is"
                f" {self.value_epochs}); ppo can separate them: algorithm=ppo"
            )
        if self.concurrency:
            raise ConfigError(
                f"{self.algorithm}.concurrency is true, but with {self.algorithm} env runners play"
                " on anyway while the learner learns; leave it out, and set num_env_runners to 1"
                " or more"
            )

    def fragments_per_update(self, num_env_runners: int) -> int:
        return self.fragments_per_batch or max(1, -(-2 * num_env_runners // self.max_lag))
