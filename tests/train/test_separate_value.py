"""PPO with a network of its own for values (DAAC: Raileanu and Fergus 2021, arXiv 2102.10330)."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import onnxruntime
import pytest
import torch

from agents import networks
from envs.common.errors import ConfigError
from tests.train.experiments import best_return, toy, toy_appo
from tests.train.test_ppo import loss_by_hand
from train.algorithms import build_algorithm
from train.compute.muon import split
from train.ppo import PPOConfig, PPORunner, ppo_loss, value_loss
from train.rllib.modules import ADVANTAGE_PREDS, SeparateValueModule
from train.runs.export import export_bundle
from train.settings import PPOSettings


def batch_of(n, actions):
    rng = np.random.default_rng(1)
    old = np.log(rng.dirichlet(np.ones(actions), n))
    taken = rng.integers(actions, size=n)
    return rng, {
        "actions": taken,
        "action_mask": np.ones((n, actions), bool),
        "action_logp": old[np.arange(n), taken],
        "advantages": rng.normal(size=n),
        "value_targets": rng.normal(size=n),
        "vf_preds": rng.normal(size=n),
        "action_dist_inputs": old,
    }


@pytest.mark.parametrize("norm_adv", [False, True])
def test_the_policys_loss_equals_the_papers_formula(norm_adv):
    """J_DAAC = J_π + α_s S − α_a L_A, where L_A is the mean squared error to the advantages that
    the policy learns from (section 3.1; the authors' code standardises them for both).
    """
    n, actions, alpha_a = 32, 4, 0.3
    rng, batch = batch_of(n, actions)
    logits = rng.normal(size=(n, actions))
    predicted = rng.normal(size=n)
    settings = PPOSettings(norm_adv=norm_adv, value_epochs=1, adv_coef=alpha_a, vf_coef=0.7)
    loss, parts = ppo_loss(
        torch.from_numpy(logits),
        None,
        {name: torch.from_numpy(column) for name, column in batch.items()},
        settings,
        ent_coef=0.03,
        predicted_advantages=torch.from_numpy(predicted),
    )
    without_values = dataclasses.replace(settings, vf_coef=0.0)
    objective = loss_by_hand(logits, np.zeros(n), batch, without_values, 0.03, 0.0)
    advantages = batch["advantages"]
    if norm_adv:
        advantages = (advantages - advantages.mean()) / advantages.std(ddof=1)
    error = math.fsum((predicted - advantages) ** 2) / n
    assert float(loss) == pytest.approx(objective + alpha_a * error, abs=1e-6)
    assert float(parts["adv_loss"]) == pytest.approx(error, abs=1e-6)
    assert "vf_loss" not in parts


def test_the_values_loss_is_half_the_mean_squared_error():
    rng, batch = batch_of(16, 3)
    values = rng.normal(size=16)
    tensors = {name: torch.from_numpy(column) for name, column in batch.items()}
    loss = value_loss(torch.from_numpy(values), tensors, PPOSettings(value_epochs=1))
    by_hand = math.fsum((values - batch["value_targets"]) ** 2) / 32
    assert float(loss) == pytest.approx(by_hand, abs=1e-12)


def test_the_advantage_depends_on_the_action_and_the_value_does_not():
    torch.manual_seed(0)
    network = networks.build("separate-value", (1, 1, 3), 2, body_options={"hidden_sizes": [8]})
    seen = torch.tensor([[[[255, 0, 0]]]] * 2, dtype=torch.uint8)
    logits, advantages = network.logits_and_advantages(seen, torch.tensor([0, 1]))
    assert advantages[0] != advantages[1]
    again, values = network(seen)
    torch.testing.assert_close(logits, again)
    torch.testing.assert_close(values, network.values(seen))
    assert values[0] == values[1]


def module():
    config = PPOConfig.from_experiment(toy("identity", value_epochs=1, bf16=False))
    return PPORunner(config=config, worker_index=0).module


def moved_by(answer):
    """The parts of the network that a loss of this answer gives gradients to."""
    own = module()
    seen = torch.randint(0, 256, (6, *own.observation_space.shape)).to(torch.uint8)
    answer(
        own.forward_train, {"obs": seen, "actions": torch.zeros(6, dtype=torch.int64)}
    ).backward()
    return {name.split(".")[1] for name, p in own.named_parameters() if p.grad is not None} | {
        name for name, p in own.network.heads.named_parameters() if p.grad is not None
    }


def test_each_phase_moves_its_own_network_only():
    def of_the_policy(forward, batch):
        answers = forward(batch)
        assert "vf_preds" not in answers
        return answers["action_dist_inputs"].sum() + answers[ADVANTAGE_PREDS].sum()

    def of_the_values(forward, batch):
        return forward({"obs": batch["obs"]})["vf_preds"].sum()

    policy = moved_by(of_the_policy)
    values = moved_by(of_the_values)
    assert policy == {
        "policy",
        "heads",
        *(f"{head}.{part}" for head in ("actor", "advantage") for part in ("weight", "bias")),
    }
    assert values == {"value", "heads", "critic.weight", "critic.bias"}


def test_muon_is_for_the_hidden_layers_of_both():
    network = module().network
    hidden, others = split(network)
    assert len(hidden) == 2
    assert {id(p) for p in network.heads.parameters()} <= {id(p) for p in others}


def differing(before, after):
    """Which of the two networks differ."""
    return {
        name.split(".")[1]
        for name, value in before.items()
        if "heads" not in name and not np.array_equal(value, after[name])
    }


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_values_are_learned_from_every_second_batch_also_after_a_restart(
    one_ray, tmp_path, optimizer
):
    experiment = toy(
        "identity", num_epochs=1, value_epochs=3, value_freq=2, optimizer=optimizer, bf16=False
    )
    first, second = build_algorithm(experiment), build_algorithm(experiment)
    try:
        weights = [first.policy_weights()]
        first.train()
        weights.append(first.policy_weights())
        first.save_to_path(str(tmp_path / "checkpoint"))
        second.restore_from_path(str(tmp_path / "checkpoint"))
        steps = []
        for _ in range(3):
            learned = second.train()["learners"]["default_policy"]
            steps.append(learned["num_module_steps_trained"])
            weights.append(second.policy_weights())
        assert all(np.isfinite(learned[name]) for name in ("vf_loss", "adv_loss", "policy_loss"))
    finally:
        first.stop()
        second.stop()
    moved = [differing(weights[k], weights[k + 1]) for k in range(4)]
    assert moved == [{"policy"}, {"policy", "value"}] * 2
    # One epoch of the policy, and three of the values.
    assert steps == [4096, 1024, 4096]


@pytest.mark.parametrize("concurrency", [False, True])
def test_solves_the_corridor(one_ray, concurrency):
    made = toy("corridor", value_epochs=4, concurrency=concurrency, clip_vloss=True)
    assert best_return(made, 40)[0] >= 0.9


def test_a_bundle_answers_as_the_network_does(tmp_path):
    experiment = toy("identity", value_epochs=2)
    own = module()
    weights = own.get_state()
    folder = export_bundle(
        tmp_path / "bundle",
        experiment=experiment,
        weights=weights,
        metrics={"env_steps": 1, "agent_steps": 1, "iteration": 1},
        provenance={"versions": {}, "git_commit": ""},
        command="",
    )
    shape = own.observation_space.shape
    seen = np.random.default_rng(0).integers(0, 256, (5, *shape), np.uint8)
    with torch.inference_mode():
        expected = [answer.numpy() for answer in own.network(torch.from_numpy(seen))]
    player = onnxruntime.InferenceSession(folder / "policy.onnx")
    for found, right in zip(player.run(None, {"observations": seen}), expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-5)


def test_what_it_does_not_go_with_is_refused():
    with pytest.raises(ConfigError, match="lstm_units"):
        toy("identity", value_epochs=1, lstm_units=4)
    with pytest.raises(ConfigError, match="value_epochs"):
        toy_appo("identity", value_epochs=1)
    with pytest.raises(ConfigError, match="num_learners"):
        PPOConfig.from_experiment(toy("identity", value_epochs=1, num_learners=2)).validate()
    with pytest.raises(ConfigError, match="value_freq"):
        PPOSettings(value_epochs=1, value_freq=0)


def test_without_it_the_network_is_the_one_that_was_named():
    config = PPOConfig.from_experiment(toy("identity"))
    assert config.runner_and_module()[1] is not SeparateValueModule
    assert config.get_default_rl_module_spec().model_config["name"] == "mlp"
