"""Brings what a network answered from the GPU to numpy."""

from __future__ import annotations

import numpy as np
import torch


def to_host(columns: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Return columns [n] and [n, k] of one device as arrays; from a GPU as `in_one_copy` does."""
    if all(column.device.type == "cpu" for column in columns.values()):
        return {name: column.numpy() for name, column in columns.items()}
    return in_one_copy(columns)


def in_one_copy(columns: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """Return columns [n] and [n, k] as arrays of float32, which has every integer up to 2²⁴.

    With one copy for each column, the GPU would be waited for as often."""
    tables = [
        column.float().view(len(column), *column.shape[1:] or [1]) for column in columns.values()
    ]
    ends = np.cumsum([table.shape[1] for table in tables])
    parts = np.split(torch.cat(tables, 1).cpu().numpy(), ends[:-1], axis=1)
    shapes = [column.shape for column in columns.values()]
    return {
        name: part.reshape(shape) for name, part, shape in zip(columns, parts, shapes, strict=True)
    }
