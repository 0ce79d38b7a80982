"""Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): steps of a matrix whose directions
all have the same length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from agents.networks.layers import Heads
from agents.networks.q_network import QNetwork


class Muon(torch.optim.Muon):
    """torch's Muon, for weights of convolutions as well: each is a matrix with one row per output
    plane.

    The momentum is summed up and then orthogonalised by five Newton-Schulz iterations in bfloat16.
    The step is scaled so that its root mean square is that of Adam's (Liu et al. 2025, arXiv
    2502.16982), so learning rates for Adam suit it. There is no weight decay. `weights` are [n, …]
    of two or more dimensions, contiguous or channels-last, and have to keep their place in memory.
    """

    def __init__(self, weights: Sequence[nn.Parameter], lr: float) -> None:
        self.weights = list(weights)
        # Views, so what is added to the matrices is added to the weights.
        matrices = [nn.Parameter(_rows(w.detach(), w).view(len(w), -1)) for w in self.weights]
        super().__init__(matrices, lr, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")

    def step(  # type: ignore[override]
        self, closure: Callable[[], float] | None = None
    ) -> float | None:
        matrices = self.param_groups[0]["params"]
        for matrix, weight in zip(matrices, self.weights, strict=True):
            if weight.grad is None:
                matrix.grad = None
            else:
                matrix.grad = _rows(weight.grad, weight).reshape(matrix.shape)
        return super().step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        for weight in self.weights:
            weight.grad = None
        super().zero_grad(set_to_none)


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
