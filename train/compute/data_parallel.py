"""Divides a batch among threads of the CPU, as `torch.nn.DataParallel` divides it among GPUs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import torch
from torch import nn

Answers = tuple[torch.Tensor, ...]
T = TypeVar("T")


class DataParallel:
    """Has each of `num_threads` threads answer and learn from some rows of a batch, and adds up the
    gradients.

    `answer` is called with a replica of `module` and rows, and returns tensors [rows, …]. Answers
    and gradients are those of the whole batch but for the order of sums, which is always the same.
    So each row must be answered by itself: no batch normalisation. Small layers gain more by it
    than by torch's own threads, which wait for each other in each layer.

    Weights must be changed in place, because the replicas' are in the same memory."""

    def __init__(
        self, module: nn.Module, num_threads: int, answer: Callable[[Any, torch.Tensor], Answers]
    ) -> None:
        self.weights = _learned(module)
        self.replicas = [_replica(module) for _ in range(num_threads)]
        self.answer = answer
        prepared = partial(torch.set_num_threads, 1)
        self._helpers = ThreadPoolExecutor(num_threads - 1, "learner", initializer=prepared)

    def __call__(self, batch: torch.Tensor) -> Answers:
        return _Passes.apply(self, batch, *self.weights)

    def map(self, work: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
        """Call `work` with each replica and its arguments, each on a thread."""
        first, *others = zip(self.replicas, *arguments, strict=True)
        waiting = [self._helpers.submit(work, *other) for other in others]
        own = work(*first)
        return [own, *(future.result() for future in waiting)]


class _Passes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, parallel: DataParallel, batch: torch.Tensor, *weights: torch.Tensor
    ) -> Answers:
        def answer(replica: nn.Module, rows: torch.Tensor) -> Answers:
            with torch.enable_grad():
                return parallel.answer(replica, rows)

        ctx.parallel = parallel
        ctx.answers = parallel.map(answer, batch.tensor_split(len(parallel.replicas)))
        return tuple(torch.cat(parts).detach() for parts in zip(*ctx.answers, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        sizes = [len(answers[0]) for answers in ctx.answers]
        parts = zip(*(gradient.split(sizes) for gradient in gradients), strict=True)
        total, *others = ctx.parallel.map(_gradients, ctx.answers, parts)
        for other in others:
            torch._foreach_add_(total, other)
        return None, None, *total


def _learned(module: nn.Module) -> list[nn.Parameter]:
    return [weight for weight in module.parameters() if weight.requires_grad]


def _replica(module: nn.Module) -> nn.Module:
    """Return a copy whose weights are in the memory of `module`'s."""
    replica = copy.deepcopy(module)
    for weight, shared in zip(replica.parameters(), module.parameters(), strict=True):
        weight.data = shared.data
    return replica


def _gradients(replica: nn.Module, answers: Answers, gradients: Answers) -> list[torch.Tensor]:
    weights = _learned(replica)
    return list(torch.autograd.grad(answers, weights, gradients, materialize_grads=True))
