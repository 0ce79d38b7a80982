"""What the sparse first layer saves in `battlesnake-ppo`: `python -m tests.benchmarks.sparse_layer
[--rounds N] [--json]`.

The shipped experiment learns with it and with the dense layer by turns, in one process on one
thread. `training` is whole iterations; `inference` and `learning` are the network's own arithmetic
(`tests.benchmarks.trainers`). Medians by CPU time."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from unittest import mock

import numpy as np
import torch
from ray.rllib.core.columns import Columns

from tests.benchmarks.measure import arguments, machine, tell
from tests.benchmarks.trainers import (
    EPOCHS,
    MINIBATCHES,
    NETWORKS,
    STEPS,
    Measured,
    arithmetic,
    trained_steps,
)
from train.algorithms import build_algorithm
from train.compute.allocator import keep_freed_memory
from train.config import Experiment
from train.rllib.ray_runtime import running_ray

BEFORE = 10
"""Iterations before anything is measured."""


def without_sparse_layer(work: Callable[[], int]) -> Callable[[], int]:
    """The same work, where the first layer of an MLP multiplies by zeros, too."""

    def dense() -> int:
        with mock.patch("agents.networks.mlp.sparse_linear", return_value=None):
            return work()

    return dense


def compare(rounds: int) -> dict[str, float]:
    """Print what the sparse first layer saves in `battlesnake-ppo`, and the distance to its
    arithmetic; returns the figures.
    """
    experiment = Experiment.load("battlesnake-ppo", ["ppo.num_threads=1"])
    ppo = experiment.settings
    own = experiment.network
    # The arithmetic goes by these.
    assert (ppo.num_steps, ppo.num_epochs, ppo.num_minibatches) == (STEPS, EPOCHS, MINIBATCHES)
    NETWORKS[own.name] = own.name, dict(own.options)
    algorithm = build_algorithm(experiment)
    training = trained_steps(algorithm, [])
    # Snakes that have learned something live longer, so there is more to see.
    for _ in range(BEFORE):
        training()
    played = algorithm.env_runner.sample()[0]
    alive = played.agent_steps() // STEPS
    inference, learning = arithmetic(
        own.name, alive, alive * STEPS // MINIBATCHES, seen=played.columns[Columns.OBS]
    )
    work = {
        "training": training,
        "training, dense": without_sparse_layer(training),
        "inference": inference,
        "inference, dense": without_sparse_layer(inference),
        "learning": learning,
        "learning, dense": without_sparse_layer(learning),
    }
    measured = {name: Measured() for name in work}
    torch.set_num_threads(1)
    for task in work.values():
        task()
    for _ in range(rounds):
        for name, task in work.items():
            measured[name].time(task)
    algorithm.stop()
    filled = np.count_nonzero(played.columns[Columns.OBS][:2000]) / 2000
    print(
        f"  {filled:.0f} of {int(np.prod(played.columns[Columns.OBS].shape[1:]))} bytes of a"
        " picture aren't zero"
    )
    spent = {name: 1e6 / one.per_cpu_s for name, one in measured.items()}
    for name in ("training", "inference", "learning"):
        dense = spent[f"{name}, dense"]
        print(
            f"  {name:<10} {spent[name]:6.2f} CPU-µs a step, dense {dense:6.2f}:"
            f" {dense / spent[name]:.2f} ×",
            flush=True,
        )
    factor = spent["training"] / (spent["inference"] + spent["learning"])
    print(
        f"  {1e6 / spent['training']:,.0f} steps/CPU-s; times the network's own arithmetic:"
        f" {factor:.2f}\n"
    )
    return {
        "battlesnake_ppo_training_per_cpu_s": 1e6 / spent["training"],
        "battlesnake_ppo_sparse_ratio": spent["training, dense"] / spent["training"],
        "battlesnake_ppo_times_the_networks_own_arithmetic": factor,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--rounds", type=int, default=5, help="iterations of each kind (default: 5)"
    )
    options = parser.parse_args()
    print("procsnake sparse layer", machine(), f"{options.rounds} rounds", flush=True)
    keep_freed_memory()
    with running_ray(num_cpus=2):
        figures = compare(options.rounds)
    tell(options, figures)


if __name__ == "__main__":
    os.environ["RLLIB_TEST_NO_TF_IMPORT"] = "1"
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    main()
