"""The starter pack's three networks in Gluon. Their twin in torch, `agents.networks.starter_pack`,
gives the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.networks.mxnet_runtime import mx, to_mxnet
from agents.networks.starter_pack_shape import StarterPackShape

nn = mx.gluon.nn


class StarterPackBlock(mx.gluon.HybridBlock):
    """Planes float32 [B, P, H, W] → Q values float32 [B, A]. `shape` has the sizes of the layers.

    The kind `vision` sees the planes through convolutions alone. `concat` adds the average of each
    plane over the board (health, food, lengths). `attention` also weighs each cell, by how well it
    answers a query that is made of those averages."""

    def __init__(self, shape: StarterPackShape) -> None:
        super().__init__()
        self.kind = shape.kind
        self.cells = (shape.rows, shape.columns)
        with self.name_scope():
            self.convolutions = nn.HybridSequential()
            for inputs, outputs in shape.channels:
                padding = shape.kernel_size // 2
                strides = shape.stride
                self.convolutions.add(
                    nn.Conv2D(outputs, shape.kernel_size, strides, padding, in_channels=inputs)
                )
            if self.kind == "attention":
                self.query = nn.Dense(shape.channels[-1][1], in_units=shape.planes)
            self.dense = nn.HybridSequential()
            for inputs, outputs in shape.dense:
                self.dense.add(nn.Dense(outputs, in_units=inputs))
            self.output = nn.Dense(shape.num_actions, in_units=shape.dense[-1][1])

    def hybrid_forward(self, F: Any, planes: Any) -> Any:
        features = planes
        averages = F.mean(planes, axis=(2, 3))
        for convolution in self.convolutions:
            features = F.relu(convolution(features))
        if self.kind == "attention":
            query = F.reshape(self.query(averages), (0, 0, 1, 1))
            scores = F.reshape(F.mean(F.broadcast_mul(features, query), axis=1), (0, -1))
            weights = F.softmax(scores, axis=1) * (self.cells[0] * self.cells[1])
            features = F.broadcast_mul(features, F.reshape(weights, (0, 1, *self.cells)))
        hidden = F.flatten(features)
        if self.kind != "vision":
            hidden = F.concat(hidden, averages, dim=1)
        for dense in self.dense:
            hidden = F.relu(dense(hidden))
        return self.output(hidden)


def build(shape: StarterPackShape, seed: int) -> StarterPackBlock:
    """Build a fresh network (initialised as by He et al. 2015). The same seed gives the same
    network.
    """
    mx.random.seed(seed)
    network = StarterPackBlock(shape)
    network.initialize(mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2))
    network.hybridize(static_alloc=True)
    return network


def to_planes(
    observations: np.ndarray, *, one_versus_all: bool, scales: Sequence[float] | None
) -> Any:
    """Return the planes that the network reads of observations [B, H, W, C], as torch's twin does
    (`StarterPack.planes`).
    """
    planes = observations.transpose(0, 3, 1, 2).astype(np.float32)
    if one_versus_all:
        planes = np.concatenate([planes[:, :2], planes[:, 2:].sum(axis=1, keepdims=True)], axis=1)
    if scales is not None:
        planes = planes * np.array(scales, np.float32).reshape(1, -1, 1, 1)
    return to_mxnet(planes)


def weights_of(network: StarterPackBlock) -> dict[str, np.ndarray]:
    """Return the network's weights, by the names that torch's twin has for them."""
    return {
        name: parameter.data().asnumpy()
        for name, parameter in network._collect_params_with_prefix().items()
    }


def set_weights(network: StarterPackBlock, weights: dict[str, np.ndarray]) -> None:
    """Set the network's weights to what `weights_of` returned."""
    for name, parameter in network._collect_params_with_prefix().items():
        parameter.set_data(to_mxnet(weights[name]))
