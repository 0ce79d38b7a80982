"""What isn't zero in a batch of pictures, found once for a layer that takes them several times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from agents.networks.threads import in_parts
from envs.battlesnake.jit import kernel

PICTURES_A_PART = 256
_DENSEST = 8
"""Where more than one in so many bytes isn't zero, the dense layer is faster."""


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


class SparsePictures:
    """Scaled pictures as `Entries`: a network takes them in place of a tensor, if they are of its
    own making (`MLP.sparse`)."""

    device = torch.device("cpu")

    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries.begins)

    def index_select(self, dim: int, positions: torch.Tensor) -> SparsePictures:
        """Return the pictures at `positions`, int64 [n], as a tensor does. No entry is copied."""
        assert dim == 0
        begins, ends, columns, factors = self.entries
        places = positions.numpy()
        return SparsePictures(Entries(begins[places], ends[places], columns, factors))


def sparse_pictures(
    pictures: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor
) -> SparsePictures | None:
    """Return `pictures`, uint8 [B, inputs], times `scales`, float32 [inputs], for a layer with that
    weight.

    The result is None on other devices and for other types, for pictures that are not mostly zero,
    and while the network is exported."""
    here = (
        pictures.device.type == weight.device.type == "cpu"
        and pictures.dtype == torch.uint8
        and weight.dtype == torch.float32
    )
    if not here or torch.jit.is_tracing() or torch.compiler.is_compiling():
        return None
    entries = _entries(pictures.contiguous().numpy(), scales.numpy())
    return SparsePictures(entries) if entries is not None else None


def _entries(pictures: np.ndarray, scales: np.ndarray) -> Entries | None:
    """Return what isn't zero in `pictures`, uint8 (B, inputs), scaled; None if that is too much."""
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
    size = count * room + (count // PICTURES_A_PART + 1) * inputs
    columns = np.empty(size, np.int32)
    factors = np.empty(size, np.float32)
    full = []

    def note(part: slice) -> None:
        first = part.start * room + part.start // PICTURES_A_PART * inputs
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

    in_parts(note, count, PICTURES_A_PART)
    if full:
        return None
    return Entries(begins, ends, columns, factors)


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
