"""Torch policies that don't crash on Ray 0.8.6.

In Ray's shared memory numbers may begin at any byte. Torch 1.5 crashes over such arrays if they are
weights with one row, or
hold whole numbers. So such arrays are copied first. Also, Ray's logger can't take statistics that
are arrays without axes.
"""

from __future__ import annotations

import numpy as np
from ray.rllib.policy.policy import LEARNER_STATS_KEY


class AlignedTorch:
    """A mixin that copies misaligned arrays. Put it before a torch policy among the bases of a
    class."""

    def _convert_to_tensor(self, arr):
        return super()._convert_to_tensor(aligned(arr))

    def set_weights(self, weights):
        super().set_weights({name: np.array(array) for name, array in weights.items()})

    def learn_on_batch(self, postprocessed_batch):
        results = super().learn_on_batch(postprocessed_batch)
        stats = results[LEARNER_STATS_KEY]
        results[LEARNER_STATS_KEY] = {name: plain(value) for name, value in stats.items()}
        return results


def aligned(array):
    """Return the array itself, or a copy if its numbers' addresses aren't multiples of their
    size."""
    if isinstance(array, np.ndarray) and not array.flags.aligned:
        return array.copy()
    return array


def plain(value):
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
