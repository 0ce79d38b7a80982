from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest
import torch

from agents import networks
from envs.common.errors import ConfigError
from tests.train.experiments import best_return, toy, toy_appo, toy_q, train_until
from tests.train.small_worlds import best_masked_return
from train.algorithms import build_algorithm
from train.ppo import adapted_kl_coef, ppo_loss
from train.settings import PPOSettings


def loss_by_hand(logits, values, batch, c, ent_coef, kl_coef):
    """Equations 7, 8 and 9 of arXiv 1707.06347 in plain Python, entry by entry, over the actions
    that the mask allows.
    """
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
        surrogate = min(
            ratio * advantages[i], min(max(ratio, 1 - c.clip_coef), 1 + c.clip_coef) * advantages[i]
        )
        # The decoupled objective: arXiv 2110.00641.
        surrogate *= batch["importance"][i] if "importance" in batch else 1
        error = (values[i] - batch["value_targets"][i]) ** 2
        if c.clip_vloss:
            step = min(max(values[i] - batch["vf_preds"][i], -c.clip_coef), c.clip_coef)
            error = max(error, (batch["vf_preds"][i] + step - batch["value_targets"][i]) ** 2)
        entropy = -math.fsum(q * math.log(q) for q in p.values())
        old = {k: math.exp(batch["action_dist_inputs"][i][k]) for k in allowed}
        kl = math.fsum(old[k] * math.log(old[k] / p[k]) for k in allowed)
        total += -surrogate + c.vf_coef * 0.5 * error - ent_coef * entropy + kl_coef * kl
    return total / n


@pytest.mark.parametrize(
    ("norm_adv", "clip_vloss", "kl_coef"),
    [(False, False, 0), (True, False, 0), (False, True, 0.3), (True, True, 1.7)],
)
@pytest.mark.parametrize("decoupled", [False, True])
def test_the_loss_equals_the_papers_formula(norm_adv, clip_vloss, kl_coef, decoupled):
    rng = np.random.default_rng(1)
    n = 64
    actions = 4
    mask = rng.random((n, actions)) < 0.6
    mask[:, 0] = True
    taken = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
    masked = np.where(mask, rng.normal(size=(n, actions)), np.finfo(np.float64).min)
    old = torch.log_softmax(torch.from_numpy(masked), -1).numpy()
    batch = {
        "actions": taken,
        "action_mask": mask,
        "action_logp": old[np.arange(n), taken],
        "advantages": rng.normal(size=n),
        "value_targets": rng.normal(size=n),
        "vf_preds": rng.normal(size=n),
        "action_dist_inputs": old,
    }
    if decoupled:
        batch["importance"] = rng.uniform(0.5, 2, n)
    logits = rng.normal(size=(n, actions))
    values = rng.normal(size=n)
    settings = PPOSettings(
        clip_coef=0.2, vf_coef=0.7, kl_coef=kl_coef, norm_adv=norm_adv, clip_vloss=clip_vloss
    )
    tensors = {name: torch.from_numpy(column) for name, column in batch.items()}
    coefs = {"ent_coef": 0.03, "kl_coef": kl_coef}
    loss, parts = ppo_loss(
        torch.from_numpy(logits), torch.from_numpy(values), tensors, settings, **coefs
    )
    assert float(loss) == pytest.approx(
        loss_by_hand(logits, values, batch, settings, **coefs), abs=1e-6
    )
    assert 0 < parts["clipfrac"] < 1


@pytest.mark.parametrize(("kl", "factor"), [(0.031, 2), (0.029, 1), (0.014, 1), (0.013, 0.5)])
def test_the_weight_of_the_kl_penalty_is_adapted_as_the_paper_says(kl, factor):
    assert adapted_kl_coef(0.8, kl, 0.02) == 0.8 * factor


def test_the_weight_of_the_kl_penalty_comes_back_soon_after_many_quiet_updates(one_ray):
    """Sixty updates that hardly change the policy, then ones that change it too much for the
    target.
    """
    algorithm = build_algorithm(toy("identity", kl_coef=0.2, kl_target=1e6))
    try:
        learner = algorithm.learner_group._learner
        for _ in range(60):
            learner._last_kl = torch.tensor(0.0)
            learner.after_gradient_based_update(timesteps={})
        least = learner._kl_coef
        assert 0.2 / 100 < least < 0.2 / 10
        for _ in range(6):
            learner._last_kl = torch.tensor(1e9)
            learner.after_gradient_based_update(timesteps={})
        assert learner._kl_coef == pytest.approx(0.2)
    finally:
        algorithm.stop()


def test_masked_logits_get_no_gradient():
    logits = torch.zeros(2, 3, requires_grad=True)
    batch = {
        "actions": torch.tensor([0, 1]),
        "action_mask": torch.tensor([[True, True, False], [True, True, False]]),
        "action_logp": torch.log(torch.tensor([0.5, 0.5])),
        "advantages": torch.tensor([1.0, -1.0]),
        "value_targets": torch.zeros(2),
        "vf_preds": torch.zeros(2),
    }
    loss, _ = ppo_loss(logits, torch.zeros(2), batch, PPOSettings(), ent_coef=0.1)
    loss.backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, 2] == 0).all()
    assert (logits.grad[:, :2] != 0).any()


@pytest.mark.parametrize("bf16", [False, True])
def test_solves_the_identity_world(one_ray, bf16):
    assert best_return(toy("identity", bf16=bf16), 30)[0] >= 0.95


def test_solves_the_masked_bandit_where_the_world_refuses_masked_actions(one_ray):
    """Always the best of what is allowed: the ranking 0 < 1 < 2 < 3 must be learned from masked
    choices alone.

    Any other ranking earns at least 2.5 % less. The mean over an iteration's 16384 episodes has a
    deviation of 0.25 %."""
    enough = 0.985 * best_masked_return()
    assert (
        best_return(toy("masked-bandit", options={"num_games": 1024}), 60, enough=enough)[0]
        >= enough
    )


def test_solves_the_corridor_whose_rows_end_at_different_times(one_ray):
    # Of as many games some reach the end by chance, a thousandth of the episodes, whatever CPU
    # rounds the sums.
    best, result = best_return(toy("corridor", gamma=0.95, options={"num_games": 1024}), 60)
    assert best >= 0.95
    assert result["env_runners"]["episode_len_mean"] == pytest.approx(10, abs=1)


def test_learns_with_a_remote_env_runner(one_ray):
    best, result = best_return(toy("identity", num_env_runners=1), 40)
    assert best >= 0.95
    assert result["env_runners"]["num_env_steps_sampled"] == 64 * 16


def test_the_learning_rate_follows_the_budget_and_target_kl_leaves_out_epochs(one_ray):
    algorithm = build_algorithm(toy("identity", anneal_lr=True, target_kl=0.0, num_epochs=4))
    try:
        algorithm.fraction_done = 0.25
        learned = algorithm.train()["learners"]["default_policy"]
        assert learned["num_module_steps_trained"] < 4 * 64 * 16
        optimizer = algorithm.learner_group._learner.get_optimizer("default_policy")
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.75e-2)
    finally:
        algorithm.stop()


def test_the_fused_optimizer_makes_the_steps_of_adam(one_ray):
    """By the formulas of Kingma and Ba (2014, arXiv 1412.6980) in double precision. Rounding to
    float32 may add up to 1e-7 per step to weights of up to 1, where a step is 1e-2. The gradients
    are as small as epsilon, so it counts."""
    algorithm = build_algorithm(toy("identity", learning_rate=1e-2))
    try:
        optimizer = algorithm.learner_group._learner.get_optimizer("default_policy")
        parameters = optimizer.param_groups[0]["params"]
        exact = [p.detach().double().clone() for p in parameters]
        firsts, seconds = ([torch.zeros_like(p) for p in exact] for _ in range(2))
        random = torch.Generator().manual_seed(0)
        for step in range(1, 6):
            for k, parameter in enumerate(parameters):
                # It lies in memory as the weights do, which autograd promises and fused steps need.
                gradient = torch.empty_like(parameter).normal_(std=1e-5, generator=random).detach()
                parameter.grad = gradient
                firsts[k] = 0.9 * firsts[k] + 0.1 * gradient.double()
                seconds[k] = 0.999 * seconds[k] + 0.001 * gradient.double().square()
                root = (seconds[k] / (1 - 0.999**step)).sqrt()
                exact[k] -= 1e-2 * firsts[k] / (1 - 0.9**step) / (root + 1e-5)
            optimizer.step()
        for parameter, expected in zip(parameters, exact, strict=True):
            torch.testing.assert_close(parameter.detach().double(), expected, rtol=0, atol=1e-6)
    finally:
        algorithm.stop()


def learned(algorithm):
    """Metrics of the default module after one more iteration, and decisions taken until then."""
    result = algorithm.train()
    steps = sum(result["env_runners"]["num_agent_steps_sampled_lifetime"].values())
    return result["learners"]["default_policy"], steps


def test_schedules_go_by_decisions_and_survive_a_restart(one_ray, tmp_path):
    """Each iteration of the identity world takes 1024 decisions, so these knots are met exactly."""
    experiment = toy(
        "identity",
        learning_rate=[[0, 1e-2], [2048, 3e-3], [4096, 1e-3]],
        ent_coef=[[0, 0.5], [1024, 0.5], [3072, 0.25]],
    )
    first = build_algorithm(experiment)
    second = build_algorithm(experiment)
    try:
        seen = [learned(first) for _ in range(3)]
        assert [steps for _, steps in seen] == [1024, 2048, 3072]
        first.save_to_path(str(tmp_path / "checkpoint"))
        second.restore_from_path(str(tmp_path / "checkpoint"))
        seen.append(learned(second))
        # A fused step takes all memory in the same order, whatever their strides say.
        optimizer = second.learner_group._learner.get_optimizer("default_policy")
        for weights, state in optimizer.state.items():
            lies = {weights.stride(), weights.grad.stride(), state["exp_avg"].stride()}
            assert lies == {weights.stride()}
        assert [m["default_optimizer_learning_rate"] for m, _ in seen] == pytest.approx(
            [1e-2, 6.5e-3, 3e-3, 2e-3], abs=1e-12
        )
        assert [m["curr_entropy_coeff"] for m, _ in seen] == pytest.approx(
            [0.5, 0.5, 0.375, 0.25], abs=1e-12
        )
    finally:
        first.stop()
        second.stop()


def test_weight_of_the_kl_penalty_and_scale_of_rewards_are_part_of_a_checkpoint(one_ray, tmp_path):
    experiment = toy("corridor", kl_coef=0.2, kl_target=1e-6, norm_reward=True)
    first = build_algorithm(experiment)
    second = build_algorithm(experiment)
    try:
        weights = [learned(first)[0]["curr_kl_coeff"] for _ in range(3)]
        assert weights == pytest.approx([0.2, 0.4, 0.8])
        first.save_to_path(str(tmp_path / "checkpoint"))
        second.restore_from_path(str(tmp_path / "checkpoint"))
        state = first.env_runner.progress()["reward_scaler"]
        assert state["count"] > 1000
        assert second.env_runner.progress()["reward_scaler"] == state
        assert learned(second)[0]["curr_kl_coeff"] == pytest.approx(1.6)
    finally:
        first.stop()
        second.stop()


@pytest.mark.parametrize("made", [toy, toy_q])
def test_a_resumed_run_plays_other_games_than_the_run_began_with(one_ray, tmp_path, made):
    """The identity world shows random pictures; a resume would see the first ones again. Two
    resumes see the same.
    """
    begun, *resumed = [build_algorithm(made("identity")) for _ in range(4)]
    try:
        for _ in range(2):
            begun.train()
        begun.save_to_path(str(tmp_path / "checkpoint"))
        for algorithm in resumed[:2]:
            algorithm.restore_from_path(str(tmp_path / "checkpoint"))
        again, twin, beginning = (
            {
                name: column.copy()
                for name, column in algorithm.env_runner.sample()[0].columns.items()
            }
            for algorithm in resumed
        )
        np.testing.assert_equal(again, twin)
        # A quarter of four pictures are the same by chance.
        assert (again["obs"] == beginning["obs"]).all(axis=(1, 2, 3)).mean() < 0.5
    finally:
        for algorithm in (begun, *resumed):
            algorithm.stop()


def test_solves_the_identity_world_with_every_option_at_once(one_ray):
    options = {
        "kl_coef": 0.05,
        "norm_reward": True,
        "clip_vloss": True,
        "target_kl": 0.2,
        "ent_coef": [[0, 0.02], [9000, 0.0]],
    }
    assert best_return(toy("identity", **options), 60)[0] >= 0.95


def test_learns_in_views_that_are_drawn_for_each_decision(one_ray):
    """Wrongly translated actions would earn 0.25 in the view that is shown half the time."""
    assert best_return(toy("symmetric-identity", symmetries=True), 40)[0] >= 0.95


@pytest.mark.parametrize("is_spoilt", [False, True])
def test_gradients_move_the_weights_and_those_that_are_no_numbers_do_not(one_ray, is_spoilt):
    algorithm = build_algorithm(toy("identity"))
    learner = algorithm.learner_group._learner
    parameters = list(learner._params.values())
    before = [parameter.detach().clone() for parameter in parameters]
    gradients = {
        reference: torch.ones_like(parameter) for reference, parameter in learner._params.items()
    }
    if is_spoilt:
        gradients[next(iter(gradients))][0, 0] = math.nan
    learner.apply_gradients(gradients)
    algorithm.stop()
    moved = [parameter.detach() - old for parameter, old in zip(parameters, before, strict=True)]
    assert (
        sum(int((change < 0).sum()) for change in moved)
        == sum(change.numel() for change in moved) - is_spoilt
    )
    assert (moved[0][0, 0] == 0) == is_spoilt


class PartlyTrained(torch.nn.Module):
    """A network with a frozen part, and one that it doesn't use."""

    def __init__(self, observation_shape, num_actions):
        super().__init__()
        inputs = math.prod(observation_shape)
        self.frozen = torch.nn.Linear(inputs, 8).requires_grad_(False)
        self.unused = torch.nn.Linear(inputs, 8)
        self.actor = torch.nn.Linear(8, num_actions)

    def forward(self, observations):
        logits = self.actor(self.frozen(observations.flatten(1).float()))
        return logits, logits[:, 0]


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_parameters_that_are_frozen_or_unused_stay_as_they_are(one_ray, optimizer):
    networks.register("partly-trained", PartlyTrained)
    algorithm = build_algorithm(
        toy("identity", optimizer=optimizer).override(["network={name: partly-trained}"])
    )
    before = algorithm.policy_weights()
    try:
        algorithm.train()
        after = algorithm.policy_weights()
    finally:
        algorithm.stop()
    moved = {name for name, value in before.items() if not np.array_equal(value, after[name])}
    assert moved == {"network.actor.weight", "network.actor.bias"}


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_limit_of_zero_is_no_limit_to_the_gradient(one_ray, algorithm):
    made = (toy if algorithm == "ppo" else toy_q)("identity", max_grad_norm=0)
    trained = build_algorithm(made)
    before = trained.policy_weights()
    try:
        train_until(trained, lambda _, learned: bool(learned))
        after = trained.policy_weights()
    finally:
        trained.stop()
    assert trained.config.grad_clip is None
    assert not all(np.array_equal(value, after[name]) for name, value in before.items())


@pytest.mark.parametrize("made", [toy, toy_appo, toy_q])
def test_a_gradient_above_the_limit_is_shortened_in_its_direction_and_one_below_is_left(
    one_ray, made
):
    algorithm = build_algorithm(made("identity", max_grad_norm=0.5))
    learner = algorithm.learner_group._learner
    generator = torch.Generator().manual_seed(0)
    algorithm.stop()
    random = {
        reference: torch.randn(p.shape, generator=generator)
        for reference, p in learner._params.items()
    }
    length = math.sqrt(sum(float(part.square().sum()) for part in random.values()))
    for norm, limited in ((100.0, 0.5), (0.1, 0.1)):
        gradients = {reference: part * (norm / length) for reference, part in random.items()}
        stepped = learner.postprocess_gradients(gradients)
        assert stepped.keys() == random.keys()
        for reference, part in random.items():
            torch.testing.assert_close(
                stepped[reference], part * (limited / length), rtol=1e-4, atol=0
            )


@pytest.mark.parametrize("options", [{}, {"lstm_units": 8}])
def test_each_epoch_learns_from_every_decision_once(one_ray, monkeypatch, options):
    """In the counting world no two observations are the same. Seven minibatches aren't all of the
    same size.
    """
    algorithm = build_algorithm(toy("counting", num_minibatches=7, num_epochs=3, **options))
    learner = algorithm.learner_group._learner
    played = []
    minibatches = []

    def play(play=algorithm._play):
        experience, metrics = play()
        played.extend(
            bytes(shown) for fragment in experience["episodes"] for shown in fragment.columns["obs"]
        )
        return experience, metrics

    def compute_loss(*, batch, compute_loss=learner.compute_loss_for_module, **rest):
        minibatches.append([bytes(shown) for shown in batch["obs"].numpy()])
        return compute_loss(batch=batch, **rest)

    monkeypatch.setattr(algorithm, "_play", play)
    monkeypatch.setattr(learner, "compute_loss_for_module", compute_loss)
    try:
        metrics, decisions = learned(algorithm)
    finally:
        algorithm.stop()
    assert decisions == len(set(played)) == 64 * 16
    assert metrics["num_module_steps_trained"] == 3 * decisions
    epochs = [
        list(chain(*minibatches[first : first + 7])) for first in range(0, len(minibatches), 7)
    ]
    assert [sorted(epoch) == sorted(played) for epoch in epochs] == [True] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_the_same_seed_gives_the_same_numbers(one_ray):
    def curve():
        algorithm = build_algorithm(toy("corridor"))
        try:
            return [
                algorithm.train()["learners"]["default_policy"]["policy_loss"] for _ in range(3)
            ]
        finally:
            algorithm.stop()

    assert curve() == curve()


@pytest.mark.parametrize(
    ("norm_adv", "least", "memory"), [(False, 4, {}), (True, 8, {}), (True, 8, {"lstm_units": 8})]
)
def test_fewer_decisions_than_minibatches_can_use_are_refused(one_ray, norm_adv, least, memory):
    """Advantages of a single decision can't be standardised."""
    for steps in (least - 1, least):
        settings = {"num_steps": steps, "num_minibatches": 4, "norm_adv": norm_adv, **memory}
        algorithm = build_algorithm(toy("identity", options={"num_games": 1}, **settings))
        try:
            if steps < least:
                message = (
                    rf"ppo\.num_minibatches is 4, .* at least {least} decisions, .* only {steps} to"
                    r" learn from"
                )
                with pytest.raises(ConfigError, match=message):
                    algorithm.train()
            else:
                assert math.isfinite(learned(algorithm)[0]["policy_loss"])
        finally:
            algorithm.stop()


def test_a_minibatch_of_one_decision_has_a_finite_loss():
    """A memory's stretch may be so short."""
    batch = {
        name: torch.zeros(1) for name in ("actions", "action_logp", "value_targets", "vf_preds")
    }
    loss, _ = ppo_loss(
        torch.zeros(1, 2),
        torch.zeros(1),
        {**batch, "advantages": torch.ones(1)},
        PPOSettings(),
        ent_coef=0.0,
    )
    assert math.isfinite(float(loss))
