"""The IMPALA network (Espeholt et al. 2018, arXiv 1802.01561, figure 3): residual convolutions, as
Procgen's results use it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn.functional import conv2d

from agents.networks.layers import Heads, orthogonal, plane_scales, to_float
from agents.networks.max_pool import MaxPool
from agents.networks.options import ImpalaOptions


class Impala(nn.Module):
    """Stages of convolution 3×3 → max pooling 3×3, stride 2 → residual blocks; ReLU, pooling head,
    dense layer, heads.

    Observations are [B, H, W, C]. `ImpalaOptions` are its options.

    Convolutions and the dense layer are initialised orthogonally with gain √2; the second
    convolution of each block with √2/number of blocks, so that a block begins near the identity;
    the heads with .01 (actor) and 1 (critic). Biases are 0. (OpenAI's train-procgen keeps
    TensorFlow's Glorot initialisation; CleanRL's ppo_procgen scales norms so that blocks begin
    small.)

    Weights and activations lie channels-last in memory, as the observations do.
    """

    scales: torch.Tensor

    def __init__(
        self, observation_shape: tuple[int, int, int], num_actions: int, **values: Any
    ) -> None:
        super().__init__()
        options = ImpalaOptions(**values)
        depths = options.depths
        blocks = options.blocks
        stem_stride = options.stem_stride
        height, rows, planes = observation_shape
        channels = [planes, *(depth * options.width for depth in depths)]
        gain = 2**0.5 / max(1, blocks * len(depths))
        strides = [stem_stride, *(1 for _ in depths[1:])]
        self.stages = nn.ModuleList(
            _Stage(a, b, blocks, gain, stride)
            for (a, b), stride in zip(pairwise(channels), strides, strict=True)
        )
        height = -(-height // stem_stride)
        rows = -(-rows // stem_stride)
        for _ in depths:
            height = (height + 1) // 2
            rows = (rows + 1) // 2
        self.pooling = options.pooling
        self.offset = options.offset
        features = channels[-1]
        if self.pooling == "flatten":
            features *= height * rows
        self.dense = orthogonal(nn.Linear(features, options.hidden))
        self.heads = Heads(options.hidden, num_actions)
        self.register_buffer(
            "scales",
            plane_scales(options.scales, planes).reshape(1, planes, 1, 1),
            persistent=False,
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        planes = to_float(observations.permute(0, 3, 1, 2))
        if self.offset:
            planes = planes - self.offset
        first, *others = self.stages
        assert isinstance(first, _Stage)
        # Scaling the weights is the same as scaling the inputs, and there are fewer of them in a
        # batch.
        entry = first.entry
        planes = first.after_entry(
            conv2d(planes, entry.weight * self.scales, entry.bias, entry.stride, padding=1)
        )
        for stage in others:
            planes = stage(planes)
        return self.heads(self.dense(self._pooled(planes.relu_())).relu())

    def _pooled(self, planes: torch.Tensor) -> torch.Tensor:
        if self.pooling == "average":
            return planes.mean((2, 3))
        if self.pooling == "max":
            return planes.amax((2, 3))
        # Flattened as they lie in memory, so without a copy.
        return planes.permute(0, 2, 3, 1).flatten(1)


class _Stage(nn.Module):
    def __init__(self, inputs: int, outputs: int, blocks: int, gain: float, stride: int) -> None:
        super().__init__()
        self.entry = orthogonal(nn.Conv2d(inputs, outputs, 3, stride, padding=1))
        self.pool = MaxPool()
        self.blocks = nn.ModuleList(_Block(outputs, gain) for _ in range(blocks))

    def forward(self, planes: torch.Tensor) -> torch.Tensor:
        return self.after_entry(self.entry(planes))

    def after_entry(self, planes: torch.Tensor) -> torch.Tensor:
        planes = self.pool(planes)
        for block in self.blocks:
            planes = block(planes)
        return planes


class _Block(nn.Module):
    def __init__(self, planes: int, gain: float) -> None:
        super().__init__()
        self.first = orthogonal(nn.Conv2d(planes, planes, 3, padding=1))
        self.second = orthogonal(nn.Conv2d(planes, planes, 3, padding=1), gain)

    def forward(self, planes: torch.Tensor) -> torch.Tensor:
        # In place, because no gradient needs what a convolution returned.
        return self.second(self.first(planes.relu()).relu_()).add_(planes)
