from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.train.experiments import toy
from train.ppo import PPOConfig, ppo_loss


def loss_by_hand(logits, values, batch, c):
    """Equations 7 and 9 of arXiv 1707.06347 in plain Python, entry by entry, over the actions that the mask allows."""
    n = len(values)
    advantages = batch["advantages"]
    if c.norm_adv:
        mean = math.fsum(advantages) / n
        std = math.sqrt(math.fsum((a - mean) ** 2 for a in advantages) / (n - 1))
        advantages = [(a - mean) / (std + 1e-8) for a in advantages]
    total = 0.0
    for i in range(n):
        allowed = [k for k in range(len(logits[i])) if batch["action_mask"][i][k]]
        z = math.fsum(math.exp(logits[i][k]) for k in allowed)
        p = {k: math.exp(logits[i][k]) / z for k in allowed}
        ratio = p[int(batch["actions"][i])] / math.exp(batch["action_logp"][i])
        surrogate = min(ratio * advantages[i], min(max(ratio, 1 - c.clip_param), 1 + c.clip_param) * advantages[i])
        error = (values[i] - batch["value_targets"][i]) ** 2
        if c.clip_vloss:
            step = min(max(values[i] - batch["vf_preds"][i], -c.clip_param), c.clip_param)
            error = max(error, (batch["vf_preds"][i] + step - batch["value_targets"][i]) ** 2)
        entropy = -math.fsum(q * math.log(q) for q in p.values())
        total += -surrogate + c.vf_loss_coeff * 0.5 * error - c.entropy_coeff * entropy
    return total / n


@pytest.mark.parametrize(("norm_adv", "clip_vloss"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_loss_equals_the_papers_formula(norm_adv, clip_vloss):
    rng = np.random.default_rng(1)
    n, actions = 64, 4
    mask = rng.random((n, actions)) < 0.6
    mask[:, 0] = True
    taken = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
    batch = {
        "actions": taken, "action_mask": mask, "action_logp": np.log(rng.uniform(0.1, 1, n)), "advantages": rng.normal(size=n),
        "value_targets": rng.normal(size=n), "vf_preds": rng.normal(size=n),
    }  # fmt: skip
    logits, values = rng.normal(size=(n, actions)), rng.normal(size=n)
    config = PPOConfig().training(clip_param=0.2, vf_loss_coeff=0.7, entropy_coeff=0.03)
    config.norm_adv, config.clip_vloss = norm_adv, clip_vloss
    tensors = {name: torch.from_numpy(column) for name, column in batch.items()}
    loss, parts = ppo_loss(torch.from_numpy(logits), torch.from_numpy(values), tensors, config)
    assert float(loss) == pytest.approx(loss_by_hand(logits, values, batch, config), abs=1e-6)
    assert 0 < parts["clipfrac"] < 1


def test_masked_logits_get_no_gradient():
    logits = torch.zeros(2, 3, requires_grad=True)
    batch = {
        "actions": torch.tensor([0, 1]), "action_mask": torch.tensor([[True, True, False], [True, True, False]]),
        "action_logp": torch.log(torch.tensor([0.5, 0.5])), "advantages": torch.tensor([1.0, -1.0]),
        "value_targets": torch.zeros(2), "vf_preds": torch.zeros(2),
    }  # fmt: skip
    loss, _ = ppo_loss(logits, torch.zeros(2), batch, PPOConfig().training(entropy_coeff=0.1))
    loss.backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, 2] == 0).all()
    assert (logits.grad[:, :2] != 0).any()


def best_return(experiment, iterations):
    algorithm = PPOConfig.from_experiment(experiment).build_algo()
    try:
        best = -math.inf
        for _ in range(iterations):
            result = algorithm.train()
            best = max(best, result["env_runners"].get("episode_return_mean", -math.inf))
            if best >= 0.98:
                break
        return best, result
    finally:
        algorithm.stop()


@pytest.mark.parametrize("bf16", [False, True])
def test_solves_the_identity_world(one_ray, bf16):
    assert best_return(toy("identity", bf16=bf16), 30)[0] >= 0.95


def test_solves_the_masked_bandit_where_the_world_refuses_masked_actions(one_ray):
    """Always the best of what is allowed: the ranking 0 < 1 < 2 < 3 must be learned from masked choices alone."""
    assert best_return(toy("masked-bandit"), 60)[0] >= 0.95


def test_solves_the_corridor_whose_rows_end_at_different_times(one_ray):
    best, result = best_return(toy("corridor", gamma=0.95), 60)
    assert best >= 0.95
    assert result["env_runners"]["episode_len_mean"] == pytest.approx(10, abs=1)


def test_learns_with_a_remote_env_runner(one_ray):
    best, result = best_return(toy("identity", num_env_runners=1), 40)
    assert best >= 0.95
    assert result["env_runners"]["num_env_steps_sampled"] == 64 * 16


def test_the_learning_rate_follows_the_budget_and_target_kl_leaves_out_epochs(one_ray):
    algorithm = PPOConfig.from_experiment(toy("identity", anneal_lr=True, target_kl=0.0, num_epochs=4)).build_algo()
    try:
        algorithm.fraction_done = 0.25
        learned = algorithm.train()["learners"]["default_policy"]
        assert learned["num_module_steps_trained"] < 4 * 64 * 16
        optimizer = algorithm.learner_group._learner.get_optimizer("default_policy")
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.75e-2)
    finally:
        algorithm.stop()


def test_the_same_seed_gives_the_same_numbers(one_ray):
    def curve():
        algorithm = PPOConfig.from_experiment(toy("corridor")).build_algo()
        try:
            return [algorithm.train()["learners"]["default_policy"]["policy_loss"] for _ in range(3)]
        finally:
            algorithm.stop()

    assert curve() == curve()
