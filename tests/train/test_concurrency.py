"""PPO that plays while it learns: each rollout is by the weights of one update earlier, and nobody
overwrites it.
"""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import train.ppo
from envs.common.errors import ConfigError
from tests.train.experiments import best_return, toy
from train.algorithms import build_algorithm
from train.rllib.env_runner_failures import EnvRunnerError
from train.settings import APPOSettings


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
    """Weights are W0 at first and Wk after k updates. With concurrency the first two rollouts are
    by W0, the third by W1, …
    """
    algorithm = built(toy("corridor", concurrency=concurrency))
    update = algorithm._update_learners
    learned_from = []
    weights = [algorithm.policy_weights()]

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


def logits_by(module, weights, observations):
    """What the network with these weights thinks of the actions: their log-probabilities float32
    (n, A).
    """
    before = module.get_state()
    module.set_state(weights)
    with torch.inference_mode():
        logits = module.rollout(torch.from_numpy(observations))[0]
    module.set_state(before)
    return torch.log_softmax(logits, -1)


def test_each_update_stays_near_the_policy_it_begins_with(built, monkeypatch):
    """Not near the one that played, which the update before has left; how likely each action was to
    that one is a weight.
    """
    algorithm = built(toy("identity", concurrency=True, kl_coef=0.2, bf16=False))
    seen = []
    whole_loss = train.ppo.ppo_loss

    def noting(logits, values, batch, *others, **coefs):
        loss, parts = whole_loss(logits, values, batch, *others, **coefs)
        seen.append(
            (
                {name: column.numpy().copy() for name, column in batch.items()},
                float(parts["approx_kl"]),
            )
        )
        return loss, parts

    monkeypatch.setattr(train.ppo, "ppo_loss", noting)
    weights = [algorithm.policy_weights()]
    for k in range(4):
        seen.clear()
        algorithm.train()
        assert abs(seen[0][1]) < 1e-6
        # The first minibatches of both epochs, the second one, and the last one.
        for batch, _ in (seen[0], seen[1], seen[len(seen) // 2], seen[-1]):
            now, played = (
                logits_by(algorithm.env_runner.module, weights[n], batch["obs"]).numpy()
                for n in (k, max(0, k - 1))
            )
            rows = np.arange(len(now)), batch["actions"]
            np.testing.assert_allclose(batch["action_dist_inputs"], now, atol=1e-5)
            np.testing.assert_allclose(batch["action_logp"], now[rows], atol=1e-5)
            np.testing.assert_allclose(batch["importance"], np.exp(now - played)[rows], rtol=1e-4)
            np.testing.assert_allclose(
                batch["vf_preds"],
                values_by(algorithm.env_runner.module, weights[k], batch["obs"]),
                atol=1e-5,
            )
        weights.append(algorithm.policy_weights())
    assert not np.allclose(seen[0][0]["importance"], 1, atol=1e-3)


def test_a_memory_stays_near_its_newest_policy_too(built, monkeypatch):
    """Whole stretches are replayed for it, so that at an update's first minibatch nothing has moved
    yet, and later it has.
    """
    algorithm = built(toy("corridor", concurrency=True, lstm_units=8, bf16=False))
    moved = []
    whole_loss = train.ppo.ppo_loss

    def noting(*arguments, **coefs):
        loss, parts = whole_loss(*arguments, **coefs)
        moved.append(float(parts["approx_kl"]))
        return loss, parts

    monkeypatch.setattr(train.ppo, "ppo_loss", noting)
    for _ in range(3):
        moved.clear()
        algorithm.train()
        assert abs(moved[0]) < 1e-6 < moved[-1]


def test_learns_while_it_plays(one_ray):
    assert best_return(toy("identity", concurrency=True), 40)[0] >= 0.95


def test_the_same_seed_gives_the_same_numbers_whichever_thread_is_faster(built):
    def curve():
        algorithm = built(toy("corridor", concurrency=True))
        return [algorithm.train()["learners"]["default_policy"]["policy_loss"] for _ in range(4)]

    assert curve() == curve()


class Normalised(torch.nn.Module):
    """What it answers to a row depends on the others."""

    def __init__(self, observation_shape, num_actions):
        super().__init__()
        self.body = torch.nn.LazyBatchNorm1d()
        self.heads = torch.nn.LazyLinear(num_actions + 1)
        self(torch.rand(2, *observation_shape))

    def forward(self, observations):
        answers = self.heads(self.body(observations.flatten(1).float()))
        return answers[:, :-1], answers[:, -1]


@pytest.mark.parametrize(
    ("network", "settings", "threads"),
    [
        ({"name": "mlp"}, {"num_threads": 3}, 3),
        ({"name": "mlp"}, {"num_threads": 1}, None),
        ({"name": f"{__name__}:Normalised"}, {"num_threads": 2}, None),
        ({"name": "mlp"}, {"num_threads": 2, "lstm_units": 8}, None),
    ],
)
def test_threads_share_minibatches_of_networks_that_see_each_row_alone(
    built, network, settings, threads
):
    experiment = toy("corridor", concurrency=True, **settings)
    network = dataclasses.replace(experiment.network, **{"options": {}, **network})
    algorithm = built(dataclasses.replace(experiment, network=network))
    parallel = algorithm.learner_group._learner.network_module.parallel
    assert (parallel and len(parallel.replicas)) == threads
    algorithm.train()


def test_restored_weights_are_those_of_every_thread(built, tmp_path):
    experiment = toy("corridor", concurrency=True, num_threads=2)
    algorithm, other = built(experiment), built(experiment)
    for _ in range(2):
        other.train()
    other.save_to_path(str(tmp_path / "checkpoint"))
    algorithm.restore_from_path(str(tmp_path / "checkpoint"))
    module = algorithm.learner_group._learner.network_module
    seen = torch.from_numpy(algorithm.env_runner.env.observations)
    torch.testing.assert_close(module.parallel(seen), module.rollout(seen))
    after = other.learner_group._learner.network_module
    torch.testing.assert_close(module.parallel(seen), after.rollout(seen))


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


def test_the_player_has_a_stream_of_its_own_on_the_gpu_that_it_plays_on(monkeypatch):
    """Which is not always GPU 0."""
    device = torch.device("cuda", 1)
    streams = []
    waited = []

    def stream(name):
        return lambda device, **options: SimpleNamespace(
            name=name, device=device, options=options, wait_stream=waited.append
        )

    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(torch.cuda, "set_stream", streams.append)
    monkeypatch.setattr(torch.cuda, "Stream", stream("its own"))
    monkeypatch.setattr(torch.cuda, "current_stream", stream("current"))
    monkeypatch.setattr(torch.cuda, "default_stream", stream("default"))
    train.ppo._prepare_player(1, device)
    runner = train.ppo.PPORunner.__new__(train.ppo.PPORunner)
    runner._device = device
    algorithm = train.ppo.PPO.__new__(train.ppo.PPO)
    monkeypatch.setattr(algorithm, "_local_runner", lambda: runner)
    monkeypatch.setattr(algorithm, "_play", lambda: "played")
    assert algorithm._play_ahead() == "played"
    assert [(one.name, one.device, one.options) for one in streams] == [
        ("its own", device, {"priority": -1})
    ]
    assert [(one.name, one.device) for one in waited] == [("default", device)]


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
    with pytest.raises(
        ConfigError, match=r"appo\.concurrency is true.* leave it out, and set num_env_runners"
    ):
        APPOSettings(concurrency=True)
