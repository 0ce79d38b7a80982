"""The networks of the SageMaker starter pack in torch.

`agents.networks.mxnet_starter_pack` is what is trained; when it is exported, it becomes one of
these."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import nn

from agents.networks.layers import to_float
from agents.networks.options import StarterPackOptions
from agents.networks.starter_pack_shape import shape_of


class StarterPack(nn.Module):
    """Observations [B, H, W, C] → (Q values float32 [B, A], the highest of each row float32 [B]).

    `StarterPackOptions` and the sizes in `StarterPackShape` are its options. With one_versus_all,
    the other snakes are those from the third plane on (see
    `StarterPackObservation(own_first=True)`)."""

    def __init__(
        self, observation_shape: tuple[int, int, int], num_actions: int, **values: Any
    ) -> None:
        super().__init__()
        names = {field.name for field in fields(StarterPackOptions)}
        options = StarterPackOptions(**{k: v for k, v in values.items() if k in names})
        sizes = {k: v for k, v in values.items() if k not in names}
        self.one_versus_all = options.state_type == "one_versus_all"
        self.scales = options.scales
        self.shape = shape = shape_of(
            observation_shape,
            num_actions,
            kind=options.kind,
            state_type=options.state_type,
            **sizes,
        )
        if self.scales is not None and len(self.scales) != shape.planes:
            raise ValueError(
                f"scales has {len(self.scales)} values, the network reads {shape.planes} planes"
            )
        kernel = shape.kernel_size
        padding = shape.kernel_size // 2
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, kernel, shape.stride, padding) for a, b in shape.channels
        )
        if shape.kind == "attention":
            self.query = nn.Linear(shape.planes, shape.channels[-1][1])
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in shape.dense)
        self.output = nn.Linear(shape.dense[-1][1], num_actions)

    def planes(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the planes that the network reads, scaled, float [B, P, H, W]."""
        planes = to_float(observations.permute(0, 3, 1, 2))
        if self.one_versus_all:
            planes = torch.cat([planes[:, :2], planes[:, 2:].sum(1, keepdim=True)], 1)
        if self.scales is not None:
            planes = planes * torch.tensor(self.scales, dtype=planes.dtype).reshape(1, -1, 1, 1)
        return planes

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shape = self.shape
        features = self.planes(observations)
        averages = features.mean((2, 3))
        for convolution in self.convolutions:
            features = convolution(features).relu()
        if shape.kind == "attention":
            scores = (features * self.query(averages)[:, :, None, None]).mean(1).flatten(1)
            weights = scores.softmax(1) * (shape.rows * shape.columns)
            features = features * weights.reshape(-1, 1, shape.rows, shape.columns)
        hidden = features.flatten(1)
        if shape.kind != "vision":
            hidden = torch.cat([hidden, averages], 1)
        for dense in self.dense:
            hidden = dense(hidden).relu()
        values = self.output(hidden)
        return values, values.max(1).values
