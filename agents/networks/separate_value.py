"""Two networks of one kind: one decides, and one estimates values."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import one_hot

from agents import networks
from agents.networks.layers import Heads, orthogonal, take_heads_off
from agents.networks.options import SeparateValueOptions


class SeparateValue(nn.Module):
    """A network for the policy and one for values, without shared layers (DAAC: Raileanu and Fergus
    2021, arXiv 2102.10330). `SeparateValueOptions` are its options.

    Values tell levels apart, which a policy that is to generalise shouldn't. The policy's network
    predicts advantages in place of values."""

    def __init__(self, observation_shape: tuple[int, ...], num_actions: int, **values: Any) -> None:
        super().__init__()
        options = SeparateValueOptions(**values)
        body_options = options.body_options or {}
        self.policy, self.value = (
            networks.build(options.body, observation_shape, num_actions, **body_options)
            for _ in range(2)
        )
        take_heads_off(self.policy)
        self.heads = AdvantageHeads(take_heads_off(self.value), num_actions)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.heads.logits(self.policy(observations)), self.values(observations)

    def values(self, observations: torch.Tensor) -> torch.Tensor:
        """Return values float32 [B], by the value network alone."""
        return self.heads.values(self.value(observations))

    def logits_and_advantages(
        self, observations: torch.Tensor, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits float32 [B, A] and the predicted advantages float32 [B] of `actions`, int64
        [B]. Only the policy's network is asked.
        """
        features = self.policy(observations)
        return self.heads.logits(features), self.heads.advantages(features, actions)


class AdvantageHeads(Heads):
    """The last layers of both networks. All are computed in float32, also under autocast."""

    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__(features, num_actions)
        self.num_actions = num_actions
        self.advantage = orthogonal(nn.Linear(features + num_actions, 1), 1.0)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        return self._float32(self.actor, features)

    def values(self, features: torch.Tensor) -> torch.Tensor:
        return self._float32(self.critic, features).squeeze(-1)

    def advantages(self, features: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        taken = one_hot(actions, self.num_actions)
        return self._float32(self.advantage, torch.cat((features.float(), taken), 1)).squeeze(-1)

    def _float32(self, layer: nn.Module, features: torch.Tensor) -> torch.Tensor:
        with torch.autocast(features.device.type, enabled=False):
            answers: torch.Tensor = layer(features.float())
            return answers
