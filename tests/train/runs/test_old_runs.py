"""Runs that commit 9be3ed9 wrote, before the modules of `train` were moved. Each was made by
`procsnake train` (its card has the command) and holds a checkpoint after 4,096 decisions, with
pickled references to modules by their names of then."""

import tarfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from train.algorithms import build_algorithm
from train.run import train
from train.runs.folder import RunFolder

RUNS = Path(__file__).parents[2] / "data/runs-9be3ed9"


@pytest.fixture(params=["ppo", "dqn"])
def old_run(request, tmp_path) -> Path:
    with tarfile.open(RUNS / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / request.param


def test_its_checkpoint_holds_the_weights_that_it_exported(one_ray, old_run):
    exported = load_file(old_run / "bundle/weights.safetensors")
    folder, experiment = RunFolder.open(old_run)
    (checkpoint,) = folder.checkpoints()
    algorithm = build_algorithm(experiment)
    try:
        algorithm.restore_from_path(str(checkpoint))
        restored = algorithm.policy_weights()
    finally:
        algorithm.stop()
    for name, weights in exported.items():
        np.testing.assert_array_equal(restored[f"network.{name}"], weights)


def test_it_goes_on_where_it_stopped(one_ray, old_run):
    config = old_run / "config.yaml"
    config.write_text(
        config.read_text().replace("total_agent_steps: 4096", "total_agent_steps: 4500")
    )
    before = RunFolder(old_run).curve()
    train(resume=old_run, trust=True)
    after = RunFolder(old_run).curve()
    # Columns that are new since then are empty.
    assert [{name: row[name] for name in before[0]} for row in after[: len(before)]] == before
    assert int(after[len(before)]["iteration"]) == len(before) + 1
    assert float(after[-1]["agent_steps"]) >= 4500
