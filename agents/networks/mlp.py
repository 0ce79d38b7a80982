"""A plain multilayer perceptron over the flattened observation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear

from agents.networks.layers import Heads, orthogonal, plane_scales, to_float
from agents.networks.options import MLPOptions
from agents.networks.sparse_linear import inputs_first, sparse_linear


class MLP(nn.Module):
    """Flatten → hidden layers with ReLU → heads. `MLPOptions` are its options.

    Where that is faster, the first layer reads only what isn't zero
    (`agents.networks.sparse_linear`)."""

    scales: torch.Tensor

    def __init__(self, observation_shape: tuple[int, ...], num_actions: int, **values: Any) -> None:
        super().__init__()
        options = MLPOptions(**values)
        inputs = math.prod(observation_shape)
        sizes = [inputs, *options.hidden_sizes]
        layers = [orthogonal(nn.Linear(a, b)) for a, b in pairwise(sizes)]
        self.hidden = nn.ModuleList([*map(inputs_first, layers[:1]), *layers[1:]])
        self.heads = Heads(sizes[-1], num_actions)
        planes = plane_scales(options.scales, observation_shape[-1])
        self.register_buffer("scales", planes.repeat(inputs // len(planes)), persistent=False)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, *others = self.hidden
        assert isinstance(first, nn.Linear)
        pictures = observations.flatten(1)
        features = sparse_linear(pictures, first, self.scales)
        if features is None:
            # Scaling the weights is the same as scaling the inputs, and there are fewer of them in
            # a batch.
            features = linear(to_float(pictures), first.weight * self.scales, first.bias)
        features = to_float(features).relu()
        for layer in others:
            features = layer(features).relu()
        return self.heads(features)
