"""The options of the networks, which `network.options` of an experiment may hold: one dataclass
each.

torch isn't needed here, so the options can be listed where it isn't installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

POOLINGS = ("flatten", "average", "max")


@dataclass(frozen=True, kw_only=True)
class MLPOptions:
    """The options of `mlp`. Raises `ValueError` for impossible values."""

    hidden_sizes: Sequence[int] = (64, 64)
    """The units of each hidden layer."""
    scales: Sequence[float] | None = None
    """One factor for each entry of the observation's last axis (float = raw * scale); by default
    1/255.
    """

    def __post_init__(self) -> None:
        if min(self.hidden_sizes, default=1) < 1:
            raise ValueError(f"hidden_sizes {list(self.hidden_sizes)} must be at least 1 each")


@dataclass(frozen=True, kw_only=True)
class SnakeCNNOptions:
    """The options of `snake-cnn`. Raises `ValueError` for impossible values."""

    channels: Sequence[int] = (32,)
    """The output planes of each convolution. By default there is one convolution, whose patches
    don't overlap; it needs half the multiply-adds of two with stride 2, and learns faster
    (docs/ppo.md).
    """
    strides: Sequence[int] = (3,)
    """The stride of each convolution."""
    hidden: int = 128
    """The units of the dense layer."""
    scales: Sequence[float] | None = None
    """One factor per plane (float = raw * scale); by default 1/255."""

    def __post_init__(self) -> None:
        channels = list(self.channels)
        strides = list(self.strides)
        if len(channels) != len(strides) or not channels:
            raise ValueError(
                f"channels {channels} and strides {strides} must be of equal length, at least 1"
            )
        if min(*channels, *strides, self.hidden) < 1:
            raise ValueError(
                f"channels {channels}, strides {strides} and hidden {self.hidden} must be at least"
                " 1 each"
            )


@dataclass(frozen=True, kw_only=True)
class ImpalaOptions:
    """The options of `impala`. Raises `ValueError` for impossible values."""

    depths: Sequence[int] = (16, 32, 32)
    """The output planes of each stage, which `width` multiplies."""
    width: int = 1
    """The factor of all `depths`."""
    blocks: int = 2
    """The number of residual blocks per stage, of two convolutions each."""
    pooling: str = "flatten"
    """What the dense layer reads: "flatten" everything, or each plane's "average" or "max"."""
    stem_stride: int = 1
    """The stride of the first convolution: with 2, every stage computes on half the height and
    width, and the dense layer reads a quarter of the values.
    """
    hidden: int = 256
    """The units of the dense layer."""
    scales: Sequence[float] | None = None
    """One factor per plane (float = raw * scale); by default 1/255."""
    offset: float = 0.0
    """What is subtracted from the raw values first (LARS: 128, with the same scale)."""

    def __post_init__(self) -> None:
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling {self.pooling!r} is none of {', '.join(POOLINGS)}")
        sizes = (*self.depths, self.width, self.hidden, self.stem_stride)
        if not self.depths or min(sizes) < 1 or self.blocks < 0:
            raise ValueError(
                f"depths {list(self.depths)}, width {self.width}, hidden {self.hidden}, stem_stride"
                f" {self.stem_stride} must be at least 1, blocks {self.blocks} 0"
            )


@dataclass(frozen=True, kw_only=True)
class QNetworkOptions:
    """The options of `q-network`. Raises `ValueError` for impossible values."""

    body: str = "mlp"
    """The network whose heads are replaced."""
    body_options: Mapping[str, Any] | None = None
    """The options of that network."""
    dueling: bool = True
    """Whether Q = V + A - mean A (Wang et al. 2016, arXiv 1511.06581)."""
    num_atoms: int = 1
    """With more than one, the heads give the distribution of returns on that many atoms, and Q is
    its mean (C51: Bellemare et al. 2017, arXiv 1707.06887).
    """
    v_min: float = -1.0
    """The return of the first atom."""
    v_max: float = 1.0
    """The return of the last atom."""
    noisy: bool = False
    """Whether the weights of the heads have learned noise (Fortunato et al. 2018, arXiv
    1706.10295). The noise is 0 until `draw_noise` is called.
    """
    sigma0: float = 0.5
    """The initial size of that noise."""

    def __post_init__(self) -> None:
        if self.num_atoms < 1 or (self.num_atoms > 1 and self.v_min >= self.v_max):
            raise ValueError(
                f"num_atoms {self.num_atoms} from v_min {self.v_min} to v_max {self.v_max} are no"
                " distribution"
            )


@dataclass(frozen=True, kw_only=True)
class RecurrentOptions:
    """The options of `recurrent`. Raises `ValueError` for impossible values."""

    body: str = "mlp"
    """The network that stands before the memory, up to its heads."""
    body_options: Mapping[str, Any] | None = None
    """The options of that network."""
    units: int = 64
    """The units of the LSTM."""

    def __post_init__(self) -> None:
        if self.units < 1:
            raise ValueError(f"units is {self.units}; it must be at least 1")


@dataclass(frozen=True, kw_only=True)
class SeparateValueOptions:
    """The options of `separate-value`."""

    body: str = "mlp"
    """The network that there is one of for the policy, and one for values."""
    body_options: Mapping[str, Any] | None = None
    """The options of that network."""


@dataclass(frozen=True, kw_only=True)
class StarterPackOptions:
    """The options of `starter-pack` besides the sizes in `starter_pack_shape.StarterPackShape`."""

    kind: str
    """Which of the pack's networks it is; `agents.networks.mxnet_starter_pack` explains them."""
    state_type: str = "layered"
    """layered, or one_versus_all, which adds up the planes of all other snakes."""
    scales: Sequence[float] | None = None
    """One factor for each plane that is read."""


OPTIONS: dict[str, type] = {
    "impala": ImpalaOptions,
    "mlp": MLPOptions,
    "q-network": QNetworkOptions,
    "recurrent": RecurrentOptions,
    "separate-value": SeparateValueOptions,
    "snake-cnn": SnakeCNNOptions,
    "starter-pack": StarterPackOptions,
}
"""The options of each built-in network, by its name."""
