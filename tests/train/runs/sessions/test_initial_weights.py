"""Runs that begin with the weights of a policy, and what can't be the beginning."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from safetensors.numpy import load

from agents import bundle
from envs.battlesnake.observations import EgocentricPlanes
from envs.common.errors import ConfigError
from tests.agents.bundles import make_bundle
from train.algorithms import build_algorithm
from train.config import Experiment
from train.run import check, train
from train.runs.export import NETWORK_PREFIX, checkpointed_weights
from train.runs.folder import RunFolder
from train.runs.sessions.initial_weights import as_overrides, initial_weights

OBSERVATION = EgocentricPlanes(view="window", radius=3, rotate=True)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("policy") / "bundle", OBSERVATION, "mlp", size=7)


def beginning_with(policy, algorithm, *changes, **settings):
    world = {"num_games": 4, "width": 7, "height": 7, "num_snakes": 2}
    world["observation"] = {"view": "window", "radius": 3, "rotate": True}
    experiment = Experiment.from_dict(
        {
            "name": "begun",
            "env": {"name": "battlesnake", "options": world},
            "algorithm": algorithm,
            algorithm: {"num_steps": 4, **settings},
            "budget": {"total_agent_steps": 200},
        }
    )
    return experiment.override([*as_overrides(str(policy)), *changes])


def own_weights(policy):
    return {
        NETWORK_PREFIX + name: value for name, value in load(bundle.load(policy).weights).items()
    }


def assert_same(found, policy):
    expected = own_weights(policy)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(np.asarray(found[name]), value)


def test_imitation_begins_with_the_policy_and_goes_on_without_it(policy, tmp_path):
    """Nothing is learned at a rate of 0, so the first checkpoint holds the weights that it began
    with.
    """
    copied = shutil.copytree(policy, tmp_path / "policy")
    experiment = beginning_with(
        copied, "imitation", teacher="greedy", learning_rate=0.0, train_batch_size=8
    )
    stopped = train(experiment, runs_dir=tmp_path / "runs", on_iteration=lambda row: True)
    assert_same(checkpointed_weights(RunFolder(stopped.path).checkpoints()[-1]), policy)
    # A checkpoint has its own weights: the policy isn't needed any more, nor looked at.
    shutil.rmtree(copied)
    resumed = train(resume=stopped.path)
    assert resumed.finished
    assert_same(checkpointed_weights(RunFolder(resumed.path).checkpoints()[-1]), policy)
    # Whoever gets the bundle learns the name of its beginning, and not where it lay.
    exported = resumed.path / "bundle"
    assert bundle.load(exported).card.config["init_from"] == "policy"
    assert str(tmp_path) not in (exported / "card.json").read_text()


def test_ppo_plays_and_learns_with_the_policys_weights(policy, one_ray):
    algorithm = build_algorithm(beginning_with(policy, "ppo"))
    try:
        algorithm.load_policy_weights(initial_weights(beginning_with(policy, "ppo")))
        assert_same(algorithm.policy_weights(), policy)
        runner = algorithm.env_runner_group.local_env_runner
        assert_same(
            {name: value.numpy() for name, value in runner.module.state_dict().items()}, policy
        )
    finally:
        algorithm.stop()


@pytest.mark.parametrize(
    ("algorithm", "changes", "message"),
    [
        (
            "imitation",
            ["network.options.hidden_sizes=[16]"],
            r"its network is mlp .*32.* the experiment's mlp .*16",
        ),
        ("imitation", ["env.options.observation.radius=4"], "its observation is .*radius.: 3"),
        ("imitation", ["env.options.observation.rotate=false"], "rotate"),
        ("imitation", ["init_from=nowhere"], "there is no policy bundle at nowhere"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused_before_anything_starts(
    policy, algorithm, changes, message
):
    with pytest.raises(Exception, match=message):
        check(beginning_with(policy, algorithm, *changes))


def test_q_learning_has_other_heads(policy):
    with pytest.raises(ConfigError, match="dqn can't begin with the weights"):
        beginning_with(policy, "dqn")


def test_a_champion_is_a_beginning_though_its_weights_are_rounded():
    overrides = as_overrides("champion-standard")
    weights = initial_weights(Experiment.load("battlesnake-league", overrides))
    assert all(value.dtype == np.float32 for value in weights.values())
    assert overrides[0] == 'init_from="champion-standard"'
