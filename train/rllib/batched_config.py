"""What the configurations of all algorithms on the batched path have in common."""

from __future__ import annotations

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


class BatchedConfig(AlgorithmConfig):
    """An RLlib configuration that `train.rllib.batched_algorithm.configure` has filled in.

    It adds nothing at run time: it says which types RLlib's own fields have on the batched path, and what it adds to them.
    """

    env: str  # type: ignore[assignment]  # RLlib's is untyped, and None at first
    lambda_: float
    num_threads: int | None
