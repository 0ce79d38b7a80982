"""A linear layer on a CPU over bytes that are mostly zero: it reads only the others.

Of the 1452 bytes that a snake sees of an 11×11 window, 30 to 60 aren't zero. In a small MLP the
layer over them is nine tenths of all multiplications. Let X be the batch and W the weights. X has
few entries, so X W is a sum of some rows of W per picture, and the gradient Xᵀ G a sum of some rows
of G per input. One kernel computes both."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from agents.networks.threads import in_parts
from envs.battlesnake.jit import kernel

_PICTURES_A_PART = 256
_INPUTS_A_PART = 64
_DENSEST = 8
"""If more than one byte in this many isn't zero, the dense layer is faster."""


class Entries(NamedTuple):
    """A sparse matrix by its rows: row r has `factors[begins[r]:ends[r]]` in the columns
    `columns[begins[r]:ends[r]]`.
    """

    begins: np.ndarray
    """Int64 (R,)."""
    ends: np.ndarray
    """Int64 (R,)."""
    columns: np.ndarray
    """Int32 (N,)."""
    factors: np.ndarray
    """Float32 (N,)."""


def inputs_first(layer: nn.Linear) -> nn.Linear:
    """Lay the weights out in memory by inputs, as `sparse_linear` reads them, and return the layer.
    It computes the same.
    """
    layer.weight = nn.Parameter(layer.weight.detach().t().contiguous().t())
    return layer


def sparse_linear(
    pictures: torch.Tensor, layer: nn.Linear, scales: torch.Tensor
) -> torch.Tensor | None:
    """Return `layer` of the scaled pictures, float32 [B, units], or None if the dense layer must
    compute it.

    `pictures` are uint8 [B, inputs], and `scales` float32 [inputs] are what they are multiplied by.
    Sums are those of float32 in another order, also under autocast. The result is None on other
    devices and for other types, for pictures that are not mostly zero, and while the network is
    exported."""
    weight = layer.weight
    bias = layer.bias
    here = (
        pictures.device.type == weight.device.type == "cpu"
        and pictures.dtype == torch.uint8
        and weight.dtype == torch.float32
    )
    if not here or torch.jit.is_tracing() or torch.compiler.is_compiling():
        return None
    entries = _entries(pictures.contiguous().numpy(), scales.numpy())
    if entries is None:
        return None
    return _SparseLinear.apply(weight, bias, entries)


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: torch.Tensor, bias: torch.Tensor, entries: Entries
    ) -> torch.Tensor:
        ctx.entries = entries
        ctx.inputs = weight.shape[1]
        return _product(entries, weight.detach().t().contiguous(), bias.detach(), _PICTURES_A_PART)

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


def _entries(pictures: np.ndarray, scales: np.ndarray) -> Entries | None:
    """Return what isn't zero in `pictures`, uint8 (B, inputs), scaled; None if too much of it isn't
    zero."""
    count, inputs = pictures.shape
    room = -(-inputs // _DENSEST)
    # Eight bytes are looked at as one number first. Rows may begin anywhere, which the processor
    # doesn't mind.
    words: np.ndarray = np.ndarray(
        (count, inputs // 8), np.uint64, buffer=pictures, strides=(inputs, 8)
    )
    begins = np.empty(count, np.int64)
    ends = np.empty(count, np.int64)
    # Each part has room of its own, and for one picture more, which may be full whatever the others
    # are.
    size = count * room + (count // _PICTURES_A_PART + 1) * inputs
    columns = np.empty(size, np.int32)
    factors = np.empty(size, np.float32)
    full = []

    def note(part: slice) -> None:
        first = part.start * room + part.start // _PICTURES_A_PART * inputs
        last = first + (part.stop - part.start) * room + inputs
        if not _note_entries(
            pictures[part],
            words[part],
            scales,
            begins[part],
            ends[part],
            columns,
            factors,
            first,
            last,
        ):
            full.append(part)

    in_parts(note, count, _PICTURES_A_PART)
    if full:
        return None
    return Entries(begins, ends, columns, factors)


def _transposed(entries: Entries, columns: int) -> Entries:
    """Return the same matrix by its columns, each with its rows in order."""
    begins = np.zeros(columns, np.int64)
    ends = np.empty(columns, np.int64)
    rows = np.empty_like(entries.columns)
    factors = np.empty_like(entries.factors)
    _transpose(*entries, begins, ends, rows, factors)
    return Entries(begins, ends, rows, factors)


@kernel
def _note_entries(
    pictures: np.ndarray,
    words: np.ndarray,
    scales: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    columns: np.ndarray,
    factors: np.ndarray,
    n: int,
    limit: int,
) -> bool:
    """Fill in the `Entries` of `pictures` (B, inputs) from `n` on. Returns whether there was room
    for them before `limit`.
    """
    whole = 8 * words.shape[1]
    for b in range(len(pictures)):
        begins[b] = n
        if limit - n < pictures.shape[1]:
            return False
        for word in range(words.shape[1]):
            if words[b, word] != 0:
                for i in range(8 * word, 8 * word + 8):
                    n = _note_entry(pictures[b, i], i, scales, columns, factors, n)
        for i in range(whole, pictures.shape[1]):
            n = _note_entry(pictures[b, i], i, scales, columns, factors, n)
        ends[b] = n
    return True


@kernel
def _note_entry(
    value: np.uint8, i: int, scales: np.ndarray, columns: np.ndarray, factors: np.ndarray, n: int
) -> int:
    """Write an entry at place n, if it isn't zero, and return the next free place."""
    if value != 0:
        columns[n] = i
        factors[n] = value * scales[i]
        n += 1
    return n


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
