"""PPO that plays while it learns: each rollout is by the weights of one update earlier, and nobody overwrites it."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest
import torch

from envs.common.errors import ConfigError
from tests.train.experiments import best_return, toy
from train.algorithm_settings import APPOSettings
from train.algorithms import build_algorithm
from train.rllib.env_runner_failures import EnvRunnerError


@pytest.fixture
def built(one_ray):
    """A function that builds an experiment's algorithm, which is stopped after the test."""
    with ExitStack() as stack:

        def build(experiment):
            algorithm = build_algorithm(experiment)
            stack.callback(algorithm.stop)
            return algorithm

        yield build


def values_by(module, weights, observations):
    """What the network with these weights says of observations: values float32 (n,)."""
    before = module.get_state()
    module.set_state(weights)
    with torch.inference_mode():
        values = module.rollout(torch.from_numpy(observations))[1].numpy().copy()
    module.set_state(before)
    return values


@pytest.mark.parametrize("concurrency", [False, True])
def test_which_weights_played_each_rollout(built, monkeypatch, concurrency):
    """Weights are W0 at first and Wk after k updates. With concurrency the first two rollouts are by W0, the third by W1, …"""
    algorithm = built(toy("corridor", concurrency=concurrency))
    update, learned_from, weights = algorithm._update_learners, [], [algorithm.policy_weights()]

    def noting(**arguments):
        (fragment,) = arguments["episodes"]
        columns = {name: np.array(fragment.columns[name]) for name in ("obs", "vf_preds")}
        results = update(**arguments)
        # What was played meanwhile must not lie where this rollout lies.
        for name, column in columns.items():
            np.testing.assert_array_equal(fragment.columns[name], column)
        learned_from.append(columns)
        weights.append(algorithm.policy_weights())
        return results

    monkeypatch.setattr(algorithm, "_update_learners", noting)
    for _ in range(4):
        algorithm.train()
    played_by = [0, 0, 1, 2] if concurrency else [0, 1, 2, 3]
    for columns, number in zip(learned_from, played_by, strict=True):
        for k, known in enumerate(weights):
            said = values_by(algorithm.env_runner.module, known, columns["obs"])
            assert np.allclose(said, columns["vf_preds"], atol=1e-6) == (k == number)


def test_learns_while_it_plays(one_ray):
    assert best_return(toy("identity", concurrency=True), 40)[0] >= 0.95


def test_the_same_seed_gives_the_same_numbers_whichever_thread_is_faster(built):
    def curve():
        algorithm = built(toy("corridor", concurrency=True))
        return [algorithm.train()["learners"]["default_policy"]["policy_loss"] for _ in range(4)]

    assert curve() == curve()


def test_decisions_are_counted_when_they_are_learned_from(built):
    algorithm = built(toy("identity", concurrency=True))
    for k in range(1, 4):
        algorithm.train()
        assert algorithm.agent_steps() == k * 64 * 16


def test_a_restored_run_learns_from_nothing_that_was_played_before(built, tmp_path):
    algorithm = built(toy("identity", concurrency=True))
    algorithm.train()
    algorithm.save_to_path(str(tmp_path / "checkpoint"))
    assert algorithm._ahead is not None
    algorithm.restore_from_path(str(tmp_path / "checkpoint"))
    assert algorithm._ahead is None
    assert algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"] == 2 * 64 * 16


def test_what_fails_while_learning_is_told_in_the_next_iteration(built, monkeypatch):
    algorithm = built(toy("identity", concurrency=True))
    algorithm.train()

    def fail(actions):
        raise RuntimeError("the world is broken")

    monkeypatch.setattr(algorithm.env_runner.env, "advance", fail)
    algorithm.training_step()
    with pytest.raises(EnvRunnerError, match="the world is broken"):
        algorithm.training_step()


def test_with_env_runners_apart_it_changes_nothing(built):
    algorithm = built(toy("identity", concurrency=True, num_env_runners=1))
    assert algorithm._player is None
    assert algorithm.train()["env_runners"]["num_env_steps_sampled"] == 64 * 16


def test_appo_refuses_it():
    with pytest.raises(ConfigError, match=r"appo\.concurrency is true.* leave it out, and set num_env_runners"):
        APPOSettings(concurrency=True)
