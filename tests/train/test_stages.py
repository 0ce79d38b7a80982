"""Experiments that begin with another one's policy: real runs, in which greedy is imitated for a
few steps.
"""

from __future__ import annotations

import numpy as np
import pytest
import yaml

import train.config
import train.run
from envs.common.errors import ConfigError
from tests.command_line import run
from train.config import Experiment
from train.run import check
from train.runs.export import checkpointed_weights
from train.runs.folder import RunFolder
from train.stages import first_stages, train_stages


@pytest.fixture(autouse=True)
def folder_of_experiments(tmp_path, monkeypatch):
    """Two experiments that learn, the second from where the first ends. The second has a learning
    rate of 0.
    """
    world = {
        "num_games": 4,
        "width": 7,
        "height": 7,
        "num_snakes": 2,
        "observation": {"radius": 3, "rotate": True},
    }
    common = {
        "env": {"name": "battlesnake", "options": world},
        "algorithm": "imitation",
        "budget": {"total_agent_steps": 120},
    }
    network = {"name": "mlp", "options": {"hidden_sizes": [8]}}
    settings = {"teacher": "greedy", "teacher_options": {}, "num_steps": 4, "train_batch_size": 8}
    lessons = {"name": "lessons", **common, "network": network, "imitation": settings}
    champion = {
        "name": "champion",
        **common,
        "init_from": "lessons",
        "imitation": {**settings, "learning_rate": 0.0},
    }
    monkeypatch.setattr(train.config, "EXPERIMENTS", tmp_path)
    for experiment in (lessons, champion):
        (tmp_path / f"{experiment['name']}.yaml").write_text(yaml.safe_dump(experiment))


def run_stages(runs, *, stop_in=None, seed=0):
    """Returns the last result and what was trained or resumed. A stage named `stop_in` is
    interrupted after an iteration.
    """
    trained = []

    def one(stage, begun):
        trained.append((stage.name, "goes on" if begun else "begins"))
        stop = (lambda row: True) if stage.name == stop_in else None
        return train.run.train(
            None if begun else stage, runs_dir=runs, resume=begun, on_iteration=stop
        )

    said = []
    experiment = Experiment.load("champion", [f"seed={seed}"])
    return train_stages(experiment, runs, one, said.append), trained, said


def last_weights(run):
    return checkpointed_weights(RunFolder(run).checkpoints()[-1])


def test_the_second_begins_with_the_firsts_network_and_weights(tmp_path):
    result, trained, _ = run_stages(tmp_path / "runs")
    assert trained == [("lessons", "begins"), ("champion", "begins")]
    assert result.finished
    (lessons,) = (tmp_path / "runs").glob("lessons-*")
    mine = last_weights(result.path)
    theirs = last_weights(lessons)
    assert mine.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_allclose(np.asarray(mine[name]), np.asarray(value), atol=1e-6)
    _, recorded = RunFolder.open(result.path)
    assert recorded.init_from == str(lessons.absolute())


def test_called_again_it_goes_on_where_it_was_interrupted_and_trains_nothing_twice(tmp_path):
    runs = tmp_path / "runs"
    result, trained, said = run_stages(runs, stop_in="lessons")
    assert (result.finished, trained) == (False, [("lessons", "begins")])
    assert said[-1] == "stage 1 of 2 was interrupted; repeat the command to continue"
    assert run_stages(runs, stop_in="champion")[1] == [
        ("lessons", "goes on"),
        ("champion", "begins"),
    ]
    result, trained, said = run_stages(runs)
    assert (result.finished, trained) == (True, [("champion", "goes on")])
    assert len(list(runs.iterdir())) == 2


def test_another_seed_is_another_recipe_from_the_first_stage_on(tmp_path):
    assert [stage.seed for stage in first_stages(Experiment.load("champion", ["seed=5"]))] == [5]
    run_stages(tmp_path / "runs")
    assert run_stages(tmp_path / "runs", seed=1)[1] == [
        ("lessons", "begins"),
        ("champion", "begins"),
    ]


def test_a_policy_is_no_stage():
    assert first_stages(Experiment.load("lessons")) == []
    assert first_stages(Experiment.load("champion", ["init_from=champion-standard"])) == []


def test_what_trains_one_experiment_alone_refuses_a_recipe(capsys):
    for words in (
        ["train", "champion", "--seeds", "2"],
        ["launch", "sagemaker", "champion", "--instances", "ml.c5.4xlarge", "--explain"],
    ):
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert "champion begins where lessons ends" in err


def test_a_single_run_says_that_the_first_stage_is_missing():
    with pytest.raises(ConfigError, match=r"lessons is an experiment.*procsnake train champion"):
        check(Experiment.load("champion"))
