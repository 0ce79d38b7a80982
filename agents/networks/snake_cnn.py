"""A small convolutional network for board-shaped observations. It is cheap, because it reads the
board in patches.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.functional import conv2d

from agents.networks.layers import Heads, orthogonal, plane_scales, to_float
from agents.networks.options import SnakeCNNOptions


class SnakeCNN(nn.Module):
    """3×3 convolutions with ReLU → one dense layer → heads, for observations [B, H, W, C].
    `SnakeCNNOptions` are its options.

    Weights and activations lie channels-last in memory, as the observations do."""

    scales: torch.Tensor

    def __init__(
        self, observation_shape: tuple[int, int, int], num_actions: int, **values: Any
    ) -> None:
        super().__init__()
        options = SnakeCNNOptions(**values)
        channels = options.channels
        strides = options.strides
        hidden = options.hidden
        height, width, planes = observation_shape
        inputs = [planes, *channels[:-1]]
        self.convolutions = nn.ModuleList(
            orthogonal(nn.Conv2d(a, b, 3, stride, padding=1))
            for a, b, stride in zip(inputs, channels, strides, strict=True)
        )
        for stride in strides:
            height = (height - 1) // stride + 1
            width = (width - 1) // stride + 1
        self.dense = orthogonal(nn.Linear(height * width * channels[-1], hidden))
        self.heads = Heads(hidden, num_actions)
        self.register_buffer(
            "scales",
            plane_scales(options.scales, planes).reshape(1, planes, 1, 1),
            persistent=False,
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, *others = self.convolutions
        assert isinstance(first, nn.Conv2d)
        # Scaling the weights is the same as scaling the inputs, and there are fewer of them in a
        # batch.
        planes = to_float(observations.permute(0, 3, 1, 2))
        planes = conv2d(
            planes, first.weight * self.scales, first.bias, first.stride, first.padding
        ).relu()
        for layer in others:
            planes = layer(planes).relu()
        # Flattened as they lie in memory, so without a copy.
        return self.heads(self.dense(planes.permute(0, 2, 3, 1).flatten(1)).relu())
