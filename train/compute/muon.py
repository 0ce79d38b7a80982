"""Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): steps of a matrix whose directions
all have the same length.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from agents.networks.layers import Heads
from agents.networks.q_network import QNetwork
from train.compute.bfloat16 import has_fast_bfloat16

_MOMENTUM = 0.95
_COEFFICIENTS = (3.4445, -4.775, 2.0315)
"""Those of the Newton-Schulz iterations, by Jordan et al."""
_ITERATIONS = 5
_EPSILON = 1e-7
"""The least norm by which a matrix is divided."""


class Muon(torch.optim.Optimizer):
    """As `torch.optim.Muon`, for weights of convolutions as well: each is a matrix with one row per
    output plane.

    Nesterov's momentum is orthogonalised by five Newton-Schulz iterations, in bfloat16 where the
    hardware multiplies it. Elsewhere they are in float32, because torch's take up to sixty times as
    long. The step is scaled so that its root mean square is that of Adam's (Liu et al. 2025, arXiv
    2502.16982), so learning rates for Adam suit it. There is no weight decay. `weights` are [n, …]
    of two or more dimensions, contiguous or channels-last, and have to keep their place in memory.
    """

    def __init__(self, weights: Sequence[nn.Parameter], lr: float) -> None:
        self.weights = list(weights)
        # Views, so what is added to the matrices is added to the weights.
        matrices = [nn.Parameter(_rows(w.detach(), w).view(len(w), -1)) for w in self.weights]
        device = self.weights[0].device
        is_fast = has_fast_bfloat16(device if device.type == "cuda" else None)
        self._dtype = torch.bfloat16 if is_fast else torch.float32
        super().__init__(matrices, {"lr": lr})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        (group,) = self.param_groups
        for matrix, weight in zip(group["params"], self.weights, strict=True):
            if weight.grad is None:
                continue
            gradient = _rows(weight.grad, weight).reshape(matrix.shape)
            state = self.state[matrix]
            if not state:
                state["momentum_buffer"] = torch.zeros_like(matrix)
            momentum = state["momentum_buffer"]
            momentum.lerp_(gradient, 1 - _MOMENTUM)
            direction = _orthogonalised(gradient.lerp(momentum, _MOMENTUM), self._dtype)
            matrix.add_(direction, alpha=-group["lr"] * 0.2 * max(matrix.shape) ** 0.5)

    def zero_grad(self, set_to_none: bool = True) -> None:
        for weight in self.weights:
            weight.grad = None
        super().zero_grad(set_to_none)


def _orthogonalised(matrix: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A matrix of `dtype` with the same directions, whose singular values are nearly 1."""
    x = matrix.to(dtype)
    # The product of a matrix and its transpose is smaller for one that is wide.
    is_tall = len(x) > x.shape[1]
    if is_tall:
        x = x.T
    x = x / x.norm().clamp(min=_EPSILON)
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if is_tall else x


def _rows(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """`values` with each output plane's numbers in the order in which those of `weight` lie in
    memory.
    """
    if weight.ndim == 4 and weight.is_contiguous(memory_format=torch.channels_last):
        return values.permute(0, 2, 3, 1)
    return values


def split(module: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The trained parameters of a module: weights of hidden layers, which are for Muon, and heads
    and biases, which aren't.
    """
    heads = {id(p) for part in _heads(module) for p in part.parameters()}
    trained = [p for p in module.parameters() if p.requires_grad]
    is_hidden = [p.ndim > 1 and id(p) not in heads for p in trained]
    hidden = [p for p, belongs in zip(trained, is_hidden, strict=True) if belongs]
    return hidden, [p for p, belongs in zip(trained, is_hidden, strict=True) if not belongs]


def _heads(module: nn.Module) -> list[nn.Module]:
    """The layers whose outputs are the network's."""
    heads: list[nn.Module] = []
    for part in module.modules():
        if isinstance(part, Heads):
            heads.append(part)
        elif isinstance(part, QNetwork):
            heads.append(part.advantage)
            if part.value is not None:
                heads.append(part.value)
    return heads
