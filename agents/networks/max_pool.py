"""Max pooling 3×3 with stride 2 for bfloat16 on a CPU. torch's own takes as long as the convolution
before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import max_pool2d

from agents.networks.threads import in_parts
from envs.battlesnake.jit import compiled_for, kernel

_PICTURES_A_PART = 32
# A bfloat16's bits as the upper half of an int32, negative numbers' turned round, are in the order
# of the numbers. The lower half says which of the nine it is: 8 for the first, so that it wins a
# tie, to 0 for the last.
_MAGNITUDE = np.int32(0x7FFF0000)
_INFINITY = np.int32(0x7F800000)
_NOTHING = np.int32(-(2**31) + 2)
_PLACE = np.int32(15)
_CODE: dict[tuple[Callable[..., None], int], Callable[..., None]] = {}


class MaxPool(nn.Module):
    """`nn.MaxPool2d(3, stride=2, padding=1)`, with a kernel of its own for bfloat16 pictures that
    are channels-last on the CPU.

    Values equal torch's. So do gradients, except for rounding: a cell that wins several windows
    gets their sum added in float32, while torch rounds to bfloat16 after each addition. 0 counts as
    greater than -0."""

    def forward(self, planes: torch.Tensor) -> torch.Tensor:
        here = planes.dtype == torch.bfloat16 and planes.device.type == "cpu"
        if here and planes.is_contiguous(memory_format=torch.channels_last):
            return _MaxPool.apply(planes)
        return max_pool2d(planes, 3, stride=2, padding=1)


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, planes: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = planes.shape
        shape = (batch, channels, (height + 1) // 2, (width + 1) // 2)
        pooled = torch.empty(shape, dtype=torch.bfloat16, memory_format=torch.channels_last)
        winners = torch.empty(shape, dtype=torch.uint8, memory_format=torch.channels_last)
        cells = _bits(planes)
        best = _bits(pooled)
        places = winners.permute(0, 2, 3, 1).numpy()

        def pool(part: slice) -> None:
            row = np.full((width + 2) * channels, _NOTHING, np.int32)
            arrays = (
                cells[part].reshape(-1, height, width * channels),
                best[part],
                places[part],
                row,
            )
            _run(_pool, arrays, channels)

        in_parts(pool, batch, _PICTURES_A_PART)
        ctx.save_for_backward(winners)
        ctx.shape = planes.shape
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (winners,) = ctx.saved_tensors
        batch, channels, height, width = ctx.shape
        result = torch.empty(ctx.shape, dtype=torch.bfloat16, memory_format=torch.channels_last)
        pooled = _bits(gradient.contiguous(memory_format=torch.channels_last))
        places = winners.permute(0, 2, 3, 1).numpy()
        cells = _bits(result).reshape(batch, height, width * channels)

        def spread(part: slice) -> None:
            row = np.empty((2 * winners.shape[3] + 1) * channels, np.float32)
            arrays = (pooled[part], places[part], cells[part], row)
            _run(_spread, arrays, channels)

        in_parts(spread, batch, _PICTURES_A_PART)
        return result


def _run(function: Callable[..., None], arrays: tuple[np.ndarray, ...], channels: int) -> None:
    """Call a kernel. Its code is looked up once, because all arrays of all calls are contiguous, so
    their types are the same.

    (Numba takes 67 µs to look the code up. A part of 32 pictures takes a millisecond.)
    """
    code = _CODE.get((function, channels))
    if code is None:
        code = _CODE[function, channels] = compiled_for(function, *arrays, constants=(channels,))
    code(*arrays, channels)


def _bits(planes: torch.Tensor) -> np.ndarray:
    """Return the pictures' bits, int16 (B, H, W, C), in the same memory."""
    return planes.detach().permute(0, 2, 3, 1).view(torch.int16).numpy()


@kernel
def _ordered(bits: np.int16) -> np.int32:
    """Return a number that is greater for greater values, and greatest for NaN, which wins with
    torch, too.
    """
    number = np.int32(bits) << 16
    if number & _MAGNITUDE > _INFINITY:
        return _MAGNITUDE
    return number ^ ((number >> 31) & _MAGNITUDE)


@kernel
def _pool(
    cells: np.ndarray, best: np.ndarray, places: np.ndarray, row: np.ndarray, channels: int
) -> None:
    """Write the largest of each window of `cells`, int16 (B, H, W·C), into `best`, int16 (B, H',
    W', C), and which of the nine it is into `places`, uint8.

    `row` is scratch, int32 ((W + 2)·C), with `_NOTHING` at its ends."""
    height = cells.shape[1]
    width = cells.shape[2]
    for b in range(len(cells)):
        for y in range(best.shape[1]):
            middle = cells[b, 2 * y]
            # Outside the picture, take the middle row once more, so late in order that it never
            # wins.
            above = middle
            first = np.int32(0)
            if y:
                above = cells[b, 2 * y - 1]
                first = np.int32(8)
            below = middle
            last = np.int32(0)
            if 2 * y + 1 < height:
                below = cells[b, 2 * y + 1]
                last = np.int32(2)
            for i in range(width):
                row[channels + i] = max(
                    _ordered(above[i]) | first,
                    max(_ordered(middle[i]) | np.int32(5), _ordered(below[i]) | last),
                )
            for x in range(best.shape[2]):
                start = 2 * x * channels
                for c in range(channels):
                    winner = max(
                        row[start + c],
                        max(
                            row[start + channels + c] - np.int32(1),
                            row[start + 2 * channels + c] - np.int32(2),
                        ),
                    )
                    places[b, y, x, c] = winner & _PLACE
                    best[b, y, x, c] = (winner ^ ((winner >> 31) & _MAGNITUDE)) >> 16


@kernel
def _spread(
    gradient: np.ndarray, places: np.ndarray, spread: np.ndarray, row: np.ndarray, channels: int
) -> None:
    """Write the gradient of the pooled pictures, int16 (B, H', W', C), to the cells that won, into
    `spread`, int16 (B, H, W·C). `places` says which they are.

    `row` is scratch, float32 ((2W' + 1)·C)."""
    for b in range(len(spread)):
        for y in range(spread.shape[1]):
            row[:] = np.float32(0.0)
            # An even row is the middle of one window, an odd one the last row of one and the first
            # of the next.
            for window in range(y // 2, min(places.shape[1], (y + 1) // 2 + 1)):
                first = np.uint8(8 - 3 * (y - 2 * window + 1))
                for x in range(places.shape[2]):
                    start = 2 * x * channels
                    # Choices as expressions, not branches, become vector instructions.
                    for c in range(channels):
                        place = places[b, window, x, c]
                        value = np.uint32(
                            np.uint32(gradient[b, window, x, c]) << np.uint32(16)
                        ).view(np.float32)
                        row[start + c] += value if place == first else np.float32(0.0)
                        row[start + channels + c] += (
                            value if place == np.uint8(first - 1) else np.float32(0.0)
                        )
                        row[start + 2 * channels + c] += (
                            value if place == np.uint8(first - 2) else np.float32(0.0)
                        )
            for i in range(spread.shape[2]):
                bits = np.float32(row[channels + i]).view(np.uint32)
                # Round to the nearest; ties go to the even one.
                spread[b, y, i] = (
                    bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
                ) >> np.uint32(16)
