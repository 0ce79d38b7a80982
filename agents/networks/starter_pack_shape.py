"""The sizes of the layers of the starter pack's networks. Those in MXNet and their twins in torch
share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from envs.common.errors import UnknownNameError

KINDS = ("attention", "concat", "vision")
STATE_TYPES = ("layered", "one_versus_all")


@dataclass(frozen=True, kw_only=True)
class StarterPackShape:
    """The size of each layer. The options have the pack's names.

    Raises `ValueError` or `UnknownNameError` for impossible values.
    """

    kind: str
    height: int
    width: int
    planes: int
    num_actions: int
    starting_channels: int = 6
    """The output planes of the first convolution. Each further one has twice as many."""
    number_of_conv_layers: int = 3
    """The number of convolutions, which follow each other."""
    number_of_dense_layers: int = 2
    """The number of dense layers between the convolutions and the layer of the Q values."""
    number_of_hidden_states: int = 128
    """The units of each dense layer."""
    kernel_size: int = 3
    """The side of the convolutions' kernels, an odd number. Apart from the stride, planes keep
    their size.
    """
    stride: int = 1
    """The stride of each convolution."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("network", str(self.kind), KINDS)
        sizes = (
            self.starting_channels,
            self.number_of_conv_layers,
            self.number_of_dense_layers,
            self.number_of_hidden_states,
        )
        if min(*sizes, self.stride) < 1 or self.kernel_size % 2 != 1:
            raise ValueError(
                f"sizes {sizes} and stride {self.stride} must be at least 1, kernel_size"
                f" {self.kernel_size} odd"
            )

    @property
    def channels(self) -> list[tuple[int, int]]:
        """The numbers of input and output planes of each convolution."""
        outputs = [self.starting_channels << layer for layer in range(self.number_of_conv_layers)]
        return list(pairwise([self.planes, *outputs]))

    @property
    def rows(self) -> int:
        """The rows of the last convolution's planes."""
        return self._after_strides(self.height)

    @property
    def columns(self) -> int:
        """The columns of the last convolution's planes."""
        return self._after_strides(self.width)

    @property
    def dense(self) -> list[tuple[int, int]]:
        """The numbers of input and output units of each dense layer."""
        features = self.channels[-1][1] * self.rows * self.columns
        # The other kinds also read the average of each plane.
        if self.kind != "vision":
            features += self.planes
        hidden = [self.number_of_hidden_states] * self.number_of_dense_layers
        return list(pairwise([features, *hidden]))

    def _after_strides(self, side: int) -> int:
        for _ in range(self.number_of_conv_layers):
            side = (side - 1) // self.stride + 1
        return side


def shape_of(
    observation_shape: tuple[int, int, int],
    num_actions: int,
    *,
    kind: str,
    state_type: str = "layered",
    **sizes: int,
) -> StarterPackShape:
    """Return the sizes of the layers for observations (H, W, C). Raises what `StarterPackShape`
    raises.
    """
    if state_type not in STATE_TYPES:
        raise UnknownNameError("state_type", str(state_type), STATE_TYPES)
    height, width, channels = observation_shape
    planes = channels
    if state_type == "one_versus_all":
        planes = 3
    if channels < planes:
        raise ValueError(
            f"one_versus_all reads food, oneself and others; the observation has {channels} planes"
        )
    return StarterPackShape(
        kind=kind, height=height, width=width, planes=planes, num_actions=num_actions, **sizes
    )
