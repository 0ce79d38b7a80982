"""A sum tree. It draws cells with probability proportional to their priorities, and changes
priorities, in O(log n).
"""

from __future__ import annotations

import numba
import numpy as np


class SumTree:
    """The priorities of `size` cells, float64 >= 0, at first 0. A cell of priority 0 is never
    drawn.
    """

    def __init__(self, size: int) -> None:
        self.first_leaf = 1 << max(0, size - 1).bit_length()
        self.nodes = np.zeros(2 * self.first_leaf)

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self.nodes[1])

    def __getitem__(self, cells: np.ndarray) -> np.ndarray:
        return self.nodes[self.first_leaf + cells]

    def __setitem__(self, cells: np.ndarray, priorities: np.ndarray | float) -> None:
        """Set the priorities of cells. If a cell is named more than once, its last priority
        counts.
        """
        _set(
            self.nodes,
            self.first_leaf,
            cells,
            np.broadcast_to(np.asarray(priorities, np.float64), cells.shape),
        )

    def draw(self, uniforms: np.ndarray) -> np.ndarray:
        """Draw a cell for each number of `uniforms`, float (n,) in [0, 1). Returns int64 (n,). The
        total must not be 0.
        """
        return _find(self.nodes, self.first_leaf, uniforms * self.total)


@numba.njit(cache=True, nogil=True)
def _set(nodes: np.ndarray, first_leaf: int, cells: np.ndarray, priorities: np.ndarray) -> None:
    for k in range(len(cells)):
        node = first_leaf + cells[k]
        nodes[node] = priorities[k]
        while node > 1:
            node >>= 1
            # Summed anew, not changed by the difference: differences would let rounding errors pile
            # up.
            nodes[node] = nodes[2 * node] + nodes[2 * node + 1]


@numba.njit(cache=True, nogil=True)
def _find(nodes: np.ndarray, first_leaf: int, positions: np.ndarray) -> np.ndarray:
    cells = np.empty(len(positions), np.int64)
    for k in range(len(positions)):
        node = 1
        left_over = positions[k]
        while node < first_leaf:
            node *= 2
            # A right half of 0 is never entered, though rounding may put a position just beyond the
            # left one.
            if left_over >= nodes[node] and nodes[node + 1] > 0.0:
                left_over -= nodes[node]
                node += 1
        cells[k] = node - first_leaf
    return cells
