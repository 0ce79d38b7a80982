from __future__ import annotations

import csv

import numpy as np
import pytest

from tests.train.experiments import toy
from train.config import Experiment
from train.metrics.levels import LEVELS, LevelTable, level_returns
from train.run import train
from train.runs.folder import RunFolder
from train.worlds.build import make_world


def test_quantiles_are_those_over_levels_of_what_was_reached_lately(tmp_path):
    """Level k first returned -1000 and returns k ever since, which is 40 times at least; some are
    played much more often.
    """
    rng = np.random.default_rng(0)
    early = np.stack([np.arange(101), np.full(101, -1000)], axis=1).astype(float)
    levels = np.concatenate([np.repeat(np.arange(101), 40), rng.integers(0, 10, 5000)])
    rng.shuffle(levels)
    late = np.stack([levels, levels], axis=1).astype(float)
    table = LevelTable()
    table.take_in({"coinrun": [early, late[:1000]]})
    table.take_in({"coinrun": [late[1000:]]})
    metrics = table.metrics()
    assert metrics.pop("levels_seen") == 101
    assert metrics == pytest.approx(
        {"level_return_worst_tenth": 10, "level_return_median": 50, "level_return_best_tenth": 90},
        abs=0.5,
    )
    table.write(tmp_path / LEVELS)
    rows = rows_of(tmp_path)
    assert [int(row["level"]) for row in rows] == list(range(101))
    counts = np.bincount(levels) + 1
    assert [int(row["episodes"]) for row in rows] == counts.tolist()
    means = (-1000 + np.arange(101) * (counts - 1)) / counts
    np.testing.assert_allclose([float(row["mean_return"]) for row in rows], means, atol=1e-9)
    assert LevelTable.read(tmp_path / LEVELS).metrics() == table.metrics()


def test_a_level_of_one_game_is_not_that_of_another():
    options = {"distribution_mode": "easy", "levels": "train:2"}
    games = [{"name": f"procgen/{game}", "options": options} for game in ("starpilot", "fruitbot")]
    world = make_world({"name": "mixture", "worlds": games, "num_games": 4})
    world.restart(0)
    for _ in range(250):
        world.advance(np.full(8, 4))
    columns = world.drain_episodes()
    found = level_returns(columns, "mixture")
    assert set(found) == {"starpilot", "fruitbot"}
    assert sum(len(pairs) for pairs in found.values()) == len(columns["row"])
    for label, pairs in found.items():
        np.testing.assert_array_equal(pairs[:, 1], columns["return"][columns[f"world_{label}"]])
    world.close()


def test_worlds_without_levels_say_nothing(tmp_path):
    assert level_returns({"row": np.zeros(3), "return": np.zeros(3)}, "identity") == {}
    table = LevelTable()
    table.take_in({})
    assert table.metrics() == {}
    table.write(tmp_path / LEVELS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("num_env_runners", [0, pytest.param(2, marks=pytest.mark.long)])
def test_a_run_keeps_the_table_of_all_its_env_runners_also_over_a_resume(
    one_ray, tmp_path, num_env_runners
):
    options = {"num_games": 16, "distribution_mode": "easy", "levels": "train:8"}
    experiment = Experiment.from_dict(
        {
            **toy("levels", num_steps=64, num_epochs=1, steps=10**9).to_dict(),
            "env": {"name": "procgen/fruitbot", "options": options},
            "network": {
                "name": "impala",
                "options": {"depths": [4], "blocks": 0, "hidden": 8, "pooling": "average"},
            },
            "num_env_runners": num_env_runners,
        }
    )
    run = train(experiment, runs_dir=tmp_path, on_iteration=lambda row: row["iteration"] == 3).path
    before = table_of(run)
    played = sum(float(row["episodes"]) for row in RunFolder(run).curve())
    assert sum(before.values()) == played > 0
    last = train(resume=run, on_iteration=lambda row: row["iteration"] == 6).metrics
    after = table_of(run)
    curve = RunFolder(run).curve()
    assert sum(after.values()) == sum(float(row["episodes"]) for row in curve) > played
    assert all(after[level] >= count for level, count in before.items())
    assert last["levels_seen"] == len(after) <= 8
    assert (
        last["level_return_worst_tenth"]
        <= last["level_return_median"]
        <= last["level_return_best_tenth"]
    )
    assert "mean_level" not in last


def rows_of(folder):
    with open(folder / LEVELS) as file:
        return list(csv.DictReader(file))


def table_of(run):
    return {
        int(row["level"]): int(row["episodes"])
        for row in rows_of(run)
        if row["world"] == "fruitbot"
    }
