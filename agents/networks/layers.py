"""Layers that the networks share: orthogonal initialisation, scaled inputs, the two heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import nn

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def orthogonal(layer: Layer, gain: float = 2**0.5) -> Layer:
    """Initialise a layer as the PPO references do, with orthogonal weights and zero biases, and
    return it.
    """
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def plane_scales(scales: Sequence[float] | None, planes: int) -> torch.Tensor:
    """Return one factor per plane, float32 (planes,); 1/255 unless given. Raises `ValueError` if
    their number is wrong.
    """
    if scales is None:
        return torch.full((planes,), 1 / 255)
    if len(scales) != planes:
        raise ValueError(f"scales has {len(scales)} values, the observation has {planes} planes")
    return torch.tensor(scales, dtype=torch.float32)


def to_float(observations: torch.Tensor) -> torch.Tensor:
    """Convert observations to the dtype that the next layer computes in. bfloat16 holds 0..255
    exactly.
    """
    device = observations.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    else:
        dtype = torch.float32
    return observations.to(dtype)


def take_heads_off(network: nn.Module) -> int:
    """Make `network` return the input of its heads, and return the number of those features.

    Raises `ValueError` for a network without such heads.
    """
    heads = getattr(network, "heads", None)
    if not isinstance(heads, Heads):
        raise ValueError(
            f"{type(network).__name__} has no heads that others could replace; give it self.heads ="
            " agents.networks.layers.Heads(…)"
        )
    network.heads = nn.Identity()
    return heads.actor.in_features


class Heads(nn.Module):
    """The last layers: features float [B, F] → (logits float32 [B, A], values float32 [B])."""

    def __init__(self, features: int, num_actions: int) -> None:
        super().__init__()
        self.actor = orthogonal(nn.Linear(features, num_actions), 0.01)
        self.critic = orthogonal(nn.Linear(features, 1), 1.0)

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # Float32 also under autocast: the policy ratio of PPO is sensitive to rounded logits, and
        # these layers are small.
        with torch.autocast(features.device.type, enabled=False):
            features = features.float()
            return self.actor(features), self.critic(features).squeeze(-1)
