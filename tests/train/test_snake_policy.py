"""A snake trained for some seconds on the shipped experiment: module, torch and ONNX are one
policy, in real games.
"""

from __future__ import annotations

import numpy as np
import pytest

from agents.policy import Policy
from tests.envs.battlesnake.positions import living, random_games
from train.config import Experiment
from train.run import train
from train.runs.export import module_of
from train.runs.folder import RunFolder, find_runs


@pytest.fixture(scope="module")
def run(one_ray, tmp_path_factory):
    short = ["budget={total_agent_steps: 20000}", "env.options.num_games=32", "ppo.num_threads=1"]
    return train(
        Experiment.load("battlesnake-ppo", short), runs_dir=tmp_path_factory.mktemp("runs")
    )


def test_the_same_observation_gives_the_same_action_everywhere(run):
    import torch

    onnx = Policy.load(run.bundle)
    torched = Policy.load(run.bundle, backend="torch")
    module = module_of(RunFolder(run.path).checkpoints()[-1])
    compared = clear = 0
    for state in random_games(num_boards=16, turns=30, seed=9):
        boards, slots = living(state)
        seen = onnx._observation.observe(state, boards, slots)
        logits = [
            onnx.logits(seen)[0],
            torched.logits(seen)[0],
            module.forward_inference({"obs": torch.from_numpy(seen)})["action_dist_inputs"].numpy(),
        ]
        for other in logits[1:]:
            np.testing.assert_allclose(other, logits[0], atol=1e-4)
            top_two = np.sort(logits[0], axis=1)[:, -2:]
            sure = top_two[:, 1] - top_two[:, 0] > 2e-4
            assert (other.argmax(axis=1) == logits[0].argmax(axis=1))[sure].all()
        np.testing.assert_array_equal(
            onnx.act_batch(state, boards, slots)[sure],
            torched.act_batch(state, boards, slots)[sure],
        )
        compared = compared + len(boards)
        clear = clear + sure.sum()
    assert compared >= 1000
    assert clear > 0.95 * compared


def test_the_run_is_found_again_by_its_experiment(run):
    experiment = RunFolder.open(run.path)[1]
    assert find_runs(run.path.parent, experiment) == [run.path]
    assert (
        find_runs(
            run.path.parent,
            Experiment.load("battlesnake-ppo", ["budget={total_agent_steps: 30000}"]),
        )
        == []
    )


def test_the_card_tells_what_the_policy_is(run):
    card = Policy.load(run.bundle).card
    assert card.observation["radius"] == 5
    assert card.steps["agent_steps"] == run.metrics["agent_steps"] >= 20_000
    assert card.config["ppo"]["gamma"] == 0.99
    assert {"torch", "ray", "numpy"} <= set(card.versions)
