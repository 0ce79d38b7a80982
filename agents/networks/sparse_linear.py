"""A linear layer over bytes that are mostly zero, on a CPU: it reads the others only.

Of the 1452 bytes that a snake sees of an 11×11 window, 30 to 60 aren't zero. In a small MLP the
layer over them is nine tenths of all multiplications. Let X be the batch and W the weights. X has
few entries, so X W is a sum of some rows of W per picture, and the gradient Xᵀ G a sum of some rows
of G per input. One kernel computes both."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from agents.networks.sparse_pictures import (
    PICTURES_A_PART,
    Entries,
    SparsePictures,
    sparse_pictures,
)
from agents.networks.threads import in_parts
from envs.battlesnake.jit import kernel

_INPUTS_A_PART = 64


def inputs_first(layer: nn.Linear) -> nn.Linear:
    """Lay the weights out in memory by inputs, as `sparse_linear` reads them, and return the layer.
    It computes the same.
    """
    layer.weight = nn.Parameter(layer.weight.detach().t().contiguous().t())
    return layer


def sparse_linear(
    pictures: torch.Tensor | SparsePictures, layer: nn.Linear, scales: torch.Tensor
) -> torch.Tensor | None:
    """Return `layer` of the scaled pictures, float32 [B, units], or None where the dense layer has
    to do it (`sparse_pictures`).

    `pictures` are uint8 [B, inputs], and `scales` float32 [inputs] are what they are multiplied by;
    `SparsePictures` are scaled already. Sums are those of float32 in another order, also under
    autocast."""
    if isinstance(pictures, torch.Tensor):
        found = sparse_pictures(pictures, layer.weight, scales)
    else:
        found = pictures
    if found is None:
        return None
    return _SparseLinear.apply(layer.weight, layer.bias, found.entries)


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: torch.Tensor, bias: torch.Tensor, entries: Entries
    ) -> torch.Tensor:
        ctx.entries = entries
        ctx.inputs = weight.shape[1]
        return _product(entries, weight.detach().t().contiguous(), bias.detach(), PICTURES_A_PART)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        gradient = gradient.float().contiguous()
        nothing = torch.zeros(gradient.shape[1])
        by_input = _product(_transposed(ctx.entries, ctx.inputs), gradient, nothing, _INPUTS_A_PART)
        return by_input.t(), gradient.sum(0), None


def _product(
    entries: Entries, table: torch.Tensor, start: torch.Tensor, rows_a_part: int
) -> torch.Tensor:
    """Return `start` [U] plus the product of `entries` (R rows, C columns) and `table` [C, U],
    float32 [R, U].
    """
    result = torch.empty(len(entries.begins), table.shape[1])
    sums = result.numpy()
    rows = table.numpy()
    first = start.contiguous().numpy()

    def add(part: slice) -> None:
        _add_rows(
            entries.begins[part],
            entries.ends[part],
            entries.columns,
            entries.factors,
            rows,
            first,
            sums[part],
        )

    in_parts(add, len(sums), rows_a_part)
    return result


def _transposed(entries: Entries, columns: int) -> Entries:
    """Return the same matrix by its columns, each with its rows in order."""
    begins = np.zeros(columns, np.int64)
    ends = np.empty(columns, np.int64)
    count = int((entries.ends - entries.begins).sum())
    rows = np.empty(count, np.int32)
    factors = np.empty(count, np.float32)
    _transpose(*entries, begins, ends, rows, factors)
    return Entries(begins, ends, rows, factors)


@kernel
def _transpose(
    begins: np.ndarray,
    ends: np.ndarray,
    columns: np.ndarray,
    factors: np.ndarray,
    by_begins: np.ndarray,
    by_ends: np.ndarray,
    by_rows: np.ndarray,
    by_factors: np.ndarray,
) -> None:
    """Turn `Entries` by rows into `Entries` by columns: a counting sort. `by_begins` is 0 at
    first.
    """
    for row in range(len(begins)):
        for k in range(begins[row], ends[row]):
            by_begins[columns[k]] += 1
    n = 0
    for column in range(len(by_begins)):
        count = by_begins[column]
        by_begins[column] = n
        by_ends[column] = n
        n += count
    for row in range(len(begins)):
        for k in range(begins[row], ends[row]):
            place = by_ends[columns[k]]
            by_ends[columns[k]] += 1
            by_rows[place] = row
            by_factors[place] = factors[k]


@kernel
def _add_rows(
    begins: np.ndarray,
    ends: np.ndarray,
    columns: np.ndarray,
    factors: np.ndarray,
    table: np.ndarray,
    start: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write `start` (U,) + the `Entries` (R, C) · `table` (C, U) into `sums` (R, U).

    Four rows at a time are added, to write sums less often."""
    for row in range(len(sums)):
        for j in range(len(start)):
            sums[row, j] = start[j]
        k = begins[row]
        while k + 4 <= ends[row]:
            a = columns[k]
            b = columns[k + 1]
            c = columns[k + 2]
            d = columns[k + 3]
            fa = factors[k]
            fb = factors[k + 1]
            fc = factors[k + 2]
            fd = factors[k + 3]
            for j in range(len(start)):
                sums[row, j] += (
                    fa * table[a, j] + fb * table[b, j] + fc * table[c, j] + fd * table[d, j]
                )
            k += 4
        while k < ends[row]:
            a = columns[k]
            fa = factors[k]
            for j in range(len(start)):
                sums[row, j] += fa * table[a, j]
            k += 1
