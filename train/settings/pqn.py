"""The settings of parallelised Q-learning (`train.pqn`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from envs.common.errors import ConfigError
from train.settings.algorithm import NetworkSettings, registered
from train.settings.limits import require_schedule
from train.settings.ppo import PPOSettings
from train.settings.schedule import Knots

_OF_A_POLICY = (
    "norm_adv",
    "clip_coef",
    "clip_vloss",
    "vf_coef",
    "ent_coef",
    "target_kl",
    "kl_coef",
    "kl_target",
    "lstm_units",
    "value_epochs",
    "value_freq",
    "adv_coef",
)
"""PPO's settings that mean nothing where Q values alone are learned."""


@registered("pqn", trainer="train.pqn:PQNConfig")
@dataclass(frozen=True, kw_only=True)
class PQNSettings(PPOSettings):
    """Parallelised Q-learning: Q values from whole rollouts, without replay and target network.

    Of PPO's settings it has those of rollouts, epochs and the optimiser; `gae_lambda` is the λ of
    its returns. The others must stay as they are. With `concurrency` a snake became weaker. The
    paper's layer normalisation and RAdam are left out."""

    can_begin_with_weights: ClassVar[bool] = False

    epsilon: float | Knots = field(default_factory=lambda: [[0, 1.0], [50_000, 0.05]])
    """Probability of a random action: a number, or knots [[agent steps, value], …]."""
    dueling: bool = True
    """Separate heads for the state's value and the actions' advantages."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_schedule(self, self.algorithm, "epsilon", 1.0)
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name in _OF_A_POLICY and value != setting.default:
                raise ConfigError(
                    f"{self.algorithm}.{setting.name} is {value!r}, but {self.algorithm} learns Q"
                    " values and no policy; leave it out, or set algorithm=ppo"
                )

    def network_for(
        self, network: NetworkSettings, world: str, options: Mapping[str, Any]
    ) -> NetworkSettings:
        own = {"body": network.name, "body_options": network.options, "dueling": self.dueling}
        return NetworkSettings(name="q-network", options=own)
