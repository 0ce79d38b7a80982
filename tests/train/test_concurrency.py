"""PPO that plays while it learns: each rollout is by the weights of one update earlier, and nobody overwrites it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from envs.common.errors import ConfigError
from tests.train.experiments import best_return, toy
from train.algorithm_settings import APPOSettings
from train.algorithms import build_algorithm
from train.rllib.env_runner_failures import EnvRunnerError


def values_by(module, weights, observations):
    """What the network with these weights says of observations: values float32 (n,)."""
    before = module.get_state()
    module.set_state(weights)
    with torch.inference_mode():
        values = module.rollout(torch.from_numpy(observations))[1].numpy().copy()
    module.set_state(before)
    return values


@pytest.mark.parametrize("concurrency", [False, True])
def test_each_rollout_was_played_with_the_weights_before_the_last_update(one_ray, monkeypatch, concurrency):
    """Cleanba's figure 2: of the weights W0, W1, … the first two rollouts are by W0, the third is by W1, and so on."""
    algorithm = build_algorithm(toy("corridor", concurrency=concurrency))
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
    try:
        for _ in range(4):
            algorithm.train()
        played_by = [0, 0, 1, 2] if concurrency else [0, 1, 2, 3]
        for columns, number in zip(learned_from, played_by, strict=True):
            for k, known in enumerate(weights):
                said = values_by(algorithm.env_runner.module, known, columns["obs"])
                assert np.allclose(said, columns["vf_preds"], atol=1e-6) == (k == number)
    finally:
        algorithm.stop()


def test_learns_while_it_plays(one_ray):
    assert best_return(toy("identity", concurrency=True), 40)[0] >= 0.95


def test_the_same_seed_gives_the_same_numbers_whichever_thread_is_faster(one_ray):
    def curve():
        algorithm = build_algorithm(toy("corridor", concurrency=True))
        try:
            return [algorithm.train()["learners"]["default_policy"]["policy_loss"] for _ in range(4)]
        finally:
            algorithm.stop()

    assert curve() == curve()


def test_decisions_are_counted_when_they_are_learned_from(one_ray):
    algorithm = build_algorithm(toy("identity", concurrency=True))
    try:
        for k in range(1, 4):
            algorithm.train()
            assert algorithm.agent_steps() == k * 64 * 16
    finally:
        algorithm.stop()


def test_a_restored_run_learns_from_nothing_that_was_played_before(one_ray, tmp_path):
    algorithm = build_algorithm(toy("identity", concurrency=True))
    try:
        algorithm.train()
        algorithm.save_to_path(str(tmp_path / "checkpoint"))
        assert algorithm._ahead is not None
        algorithm.restore_from_path(str(tmp_path / "checkpoint"))
        assert algorithm._ahead is None
        assert algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"] == 2 * 64 * 16
    finally:
        algorithm.stop()


def test_what_fails_while_learning_is_told_in_the_next_iteration(one_ray, monkeypatch):
    algorithm = build_algorithm(toy("identity", concurrency=True))
    try:
        algorithm.train()

        def fail(actions):
            raise RuntimeError("the world is broken")

        monkeypatch.setattr(algorithm.env_runner.env, "advance", fail)
        algorithm.training_step()
        with pytest.raises(EnvRunnerError, match="the world is broken"):
            algorithm.training_step()
    finally:
        algorithm.stop()


def test_with_env_runners_apart_it_changes_nothing(one_ray):
    algorithm = build_algorithm(toy("identity", concurrency=True, num_env_runners=1))
    try:
        assert algorithm._player is None
        assert algorithm.train()["env_runners"]["num_env_steps_sampled"] == 64 * 16
    finally:
        algorithm.stop()


def test_appo_refuses_it():
    with pytest.raises(ConfigError, match=r"appo\.concurrency is of ppo"):
        APPOSettings(concurrency=True)
