from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch
from ray.rllib.core.learner.training_data import TrainingData

from agents import networks
from envs.common.errors import ConfigError
from envs.procgen.scores import EASY
from envs.wrappers import shaped
from tests.train.experiments import toy_q
from tests.train.small_worlds import best_masked_return
from train.algorithms import build_algorithm
from train.config import Experiment
from train.dqn import DQNConfig, Drawn, QRunner, dqn_losses, project
from train.rllib.batched_algorithm import AGENT_STEPS_BEFORE
from train.rllib.env_runner_failures import LostExperienceError
from train.run import train
from train.runs.export import _card, module_of
from train.runs.folder import RunFolder
from train.worlds.build import single_world

RAINBOW = {"num_atoms": 21, "v_min": 0.0, "v_max": 1.0, "noisy": True, "epsilon": 0.0}
PLAIN = {"double_q": False, "dueling": False, "n_step": 1, "priority_alpha": 0.0}


def projected_by_hand(p, reward, discount, support):
    """Algorithm 1 of arXiv 1707.06887, atom by atom, in float64."""
    n = len(support)
    low = support[0]
    high = support[-1]
    step = (high - low) / (n - 1)
    out = [0.0] * n
    for j in range(n):
        b = (min(max(reward + discount * support[j], low), high) - low) / step
        below = math.floor(b)
        above = math.ceil(b)
        if below == above:
            out[below] += p[j]
        else:
            out[below] += p[j] * (above - b)
            out[above] += p[j] * (b - below)
    return out


@pytest.mark.parametrize(("n", "low", "high"), [(51, -10.0, 10.0), (2, 0.0, 1.0), (21, -1.0, 3.0)])
def test_the_projection_equals_the_papers_algorithm(n, low, high):
    rng = np.random.default_rng(n)
    support = np.linspace(low, high, n)
    p = rng.dirichlet(np.ones(n), 40)
    rewards = rng.uniform(2 * low - 1, 2 * high + 1, 40)
    rewards[:3] = [0.0, low, high]
    discounts = np.where(rng.random(40) < 0.3, 0.0, rng.uniform(0.8, 1.0, 40))
    discounts[0] = 1.0
    projected = project(*(torch.from_numpy(a) for a in (p, rewards, discounts, support)))
    expected = [projected_by_hand(*row, support) for row in zip(p, rewards, discounts, strict=True)]
    np.testing.assert_allclose(projected, expected, atol=1e-9)
    np.testing.assert_allclose(projected.sum(-1), 1.0, atol=1e-9)
    single = project(*(torch.from_numpy(a).float() for a in (p, rewards, discounts, support)))
    np.testing.assert_allclose(single, expected, atol=2e-5)


def batch_of(rng, n, actions, atoms):
    mask = rng.random((n, actions)) < 0.5
    mask[np.arange(n), rng.integers(actions, size=n)] = True
    batch = {
        "actions": rng.integers(actions, size=n),
        "rewards": rng.normal(size=n),
        "next_action_mask": mask,
        "discounts": np.where(rng.random(n) < 0.3, 0.0, 0.97),
    }
    answers = {
        name: rng.normal(size=(n, actions, atoms)) * 3
        for name in ("atoms", "next_atoms", "target_atoms")
    }
    # What is masked looks best: only masking itself keeps it out.
    for name in ("next_atoms", "target_atoms"):
        answers[name][~mask] += 50.0 * np.linspace(0, 1, atoms) if atoms > 1 else 50.0
    return batch, answers


def as_tensors(columns):
    return {name: torch.from_numpy(column) for name, column in columns.items()}


@pytest.mark.parametrize("double_q", [True, False])
def test_targets_are_those_of_double_q_learning_over_the_allowed_actions(double_q):
    """Equation 4 of arXiv 1509.06461, entry by entry in plain Python; Huber loss of the
    difference.
    """
    batch, answers = batch_of(np.random.default_rng(0), 64, 4, 1)
    losses, errors = dqn_losses(
        as_tensors(answers), as_tensors(batch), torch.zeros(1), double_q=double_q
    )
    for i in range(64):
        allowed = [a for a in range(4) if batch["next_action_mask"][i][a]]
        judge = answers["next_atoms" if double_q else "target_atoms"][i, :, 0]
        best = max(allowed, key=lambda a: judge[a])
        target = batch["rewards"][i] + batch["discounts"][i] * answers["target_atoms"][i, best, 0]
        error = abs(answers["atoms"][i, batch["actions"][i], 0] - target)
        assert errors[i] == pytest.approx(error, abs=1e-6)
        assert losses[i] == pytest.approx(0.5 * error**2 if error <= 1 else error - 0.5, abs=1e-6)


@pytest.mark.parametrize("double_q", [True, False])
def test_distributional_losses_are_cross_entropies_to_the_projected_target(double_q):
    support = np.linspace(-1, 2, 11)
    batch, answers = batch_of(np.random.default_rng(1), 40, 3, 11)
    losses, divergences = dqn_losses(
        as_tensors(answers), as_tensors(batch), torch.from_numpy(support), double_q=double_q
    )

    def softmax(x):
        e = np.exp(x - x.max())
        return e / e.sum()

    for i in range(40):
        judge = answers["next_atoms" if double_q else "target_atoms"][i]
        expected = [
            softmax(a) @ support if ok else -np.inf
            for a, ok in zip(judge, batch["next_action_mask"][i], strict=True)
        ]
        p = softmax(answers["target_atoms"][i, int(np.argmax(expected))])
        m = np.array(projected_by_hand(p, batch["rewards"][i], batch["discounts"][i], support))
        q = softmax(answers["atoms"][i, batch["actions"][i]])
        assert losses[i] == pytest.approx(-(m * np.log(q)).sum(), abs=1e-6)
        seen = m > 0
        assert divergences[i] == pytest.approx(
            (m[seen] * np.log(m[seen] / q[seen])).sum(), abs=1e-6
        )


def played(experiment, iterations, *, enough=0.98):
    algorithm = build_algorithm(experiment)
    try:
        best = -math.inf
        for _ in range(iterations):
            result = algorithm.train()
            best = max(best, result["env_runners"].get("episode_return_mean", -math.inf))
            if best >= enough:
                break
        return best, result
    finally:
        algorithm.stop()


@pytest.mark.parametrize("options", [{}, PLAIN, RAINBOW])
def test_solves_the_identity_world(one_ray, options):
    assert played(toy_q("identity", **options), 100)[0] >= 0.95


@pytest.mark.parametrize("options", [{}, RAINBOW])
def test_solves_the_masked_bandit_where_the_world_refuses_masked_actions(one_ray, options):
    """The world asserts that no masked action is taken, at random neither.

    The actions 1, 2 and 3 in any other order earn at least 6 % less. The mean over an iteration's
    1024 episodes has a deviation of 1 %."""
    enough = 0.98 * best_masked_return()
    assert (
        played(toy_q("masked-bandit", options={"num_games": 256}, **options), 100, enough=enough)[0]
        >= enough
    )


def test_truncated_games_that_never_pay_are_worth_nothing(one_ray):
    """Cut off after 8 turns, the corridor's end is never seen: nothing may be made up."""
    best, result = played(toy_q("corridor", gamma=0.95, options={"max_turns": 8}), 60)
    assert best == 0.0
    assert abs(float(result["learners"]["default_policy"]["qf_mean"])) < 0.1


@pytest.mark.parametrize("options", [{}, RAINBOW])
def test_solves_the_corridor_whose_rows_end_at_different_times(one_ray, options):
    best, result = played(toy_q("corridor", gamma=0.95, **options), 120)
    assert best >= 0.95
    assert result["env_runners"]["episode_len_mean"] == pytest.approx(10, abs=1)


@pytest.mark.long
def test_learns_with_two_remote_env_runners(one_ray):
    best, result = played(toy_q("identity", num_env_runners=2), 60)
    assert best >= 0.95
    assert result["env_runners"]["num_env_steps_sampled"] == 2 * 64 * 4


@pytest.mark.long
# Ray's own: it sets fields of its data context that it has deprecated when it starts a learner.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")
@pytest.mark.parametrize("by_reference", [False, True])
@pytest.mark.parametrize("num_learners", [1, 2])
def test_learners_apart_share_batches_and_return_td_errors_in_their_order(
    one_ray, num_learners, by_reference
):
    experiment = replace(toy_q("identity", bf16=False), num_learners=num_learners)
    algorithm = build_algorithm(experiment)
    try:
        returns = [algorithm.train()["env_runners"]["episode_return_mean"] for _ in range(20)]
        assert max(returns) >= 0.95
        batch = algorithm.replay.sample(65, beta=0.4)
        weights = weights_of(algorithm)
        drawn = Drawn.of(batch, num_references=num_learners if by_reference else 0)
        errors = algorithm._learn(drawn, algorithm.agent_steps())
    finally:
        algorithm.stop()
    settings = experiment.policy_network
    columns = as_tensors(batch)
    answers = {}
    with torch.inference_mode():
        parts = (
            ("atoms", "network", "obs"),
            ("next_atoms", "network", "new_obs"),
            ("target_atoms", "target", "new_obs"),
        )
        for name, part, seen in parts:
            network = networks.build(settings.name, (1, 1, 4), 4, **settings.options)
            own = {
                key.removeprefix(f"{part}."): value
                for key, value in weights.items()
                if key.startswith(f"{part}.")
            }
            network.load_state_dict(as_tensors(own))
            answers[name] = network.atoms(columns[seen])
        _, expected = dqn_losses(answers, columns, torch.zeros(1), double_q=True)
    np.testing.assert_allclose(errors, expected, atol=1e-5)
    assert len(np.unique(errors)) > 4


def test_a_learner_whose_batch_is_lost_goes_through_the_last_one_again(one_ray):
    """RLlib gives a learner no episodes if those who had them are gone
    (`TrainingData.solve_refs`).
    """
    algorithm = build_algorithm(toy_q("identity", learning_starts=10**6))
    try:
        algorithm.train()
        learner = algorithm.learner_group._learner
        fragment = Drawn.of(algorithm.replay.sample(33, beta=0.4)).experience["episodes"][0]

        def learned_from(episodes):
            found = learner.update(
                training_data=TrainingData(episodes=episodes), timesteps={AGENT_STEPS_BEFORE: 0}
            )
            return sum(map(len, found["default_policy"]["td_error"].peek()))

        with pytest.raises(LostExperienceError, match="first batch"):
            learned_from([])
        assert learned_from([fragment]) == learned_from([]) == 33
    finally:
        algorithm.stop()


def test_each_decision_is_learned_from_as_often_as_replay_ratio_says(one_ray):
    algorithm = build_algorithm(toy_q("identity", replay_ratio=1.7, learning_starts=1))
    try:
        for _ in range(20):
            result = algorithm.train()
        trained = result["learners"]["default_policy"]["num_module_steps_trained_lifetime"]
        # The first step of a stretch can only be drawn once the n-th after it is there; nothing is
        # learned until then.
        assert 1.7 * 256 * 19 - 128 <= trained <= 1.7 * 256 * 20
    finally:
        algorithm.stop()


def weights_of(algorithm):
    return algorithm.learner_group.get_state(components="learner/rl_module")["learner"][
        "rl_module"
    ]["default_policy"]


@pytest.mark.parametrize("tau", [1.0, 0.25])
def test_the_target_network_follows_at_its_time_and_pace(one_ray, tau):
    options = {
        "target_update_freq": 3,
        "tau": tau,
        "learning_starts": 1,
        "train_batch_size": 256,
        "replay_ratio": 1,
    }
    algorithm = build_algorithm(toy_q("identity", **options))
    name = "advantage.weight"
    try:
        before = weights_of(algorithm)[f"target.{name}"]
        for update in range(1, 7):
            algorithm.train()
            now = weights_of(algorithm)
            expected = (
                before + tau * (now[f"network.{name}"] - before) if update % 3 == 0 else before
            )
            np.testing.assert_allclose(now[f"target.{name}"], expected, atol=1e-6)
            before = now[f"target.{name}"]
    finally:
        algorithm.stop()


def test_random_actions_are_as_frequent_as_epsilon_says_and_uniform_over_the_allowed(one_ray):
    runner = QRunner(
        config=DQNConfig.from_experiment(toy_q("masked-bandit", num_steps=200, bf16=False)),
        worker_index=0,
    )
    with torch.no_grad():
        runner.module.network.advantage.bias.copy_(torch.tensor([0.0, 1.0, 2.0, 3.0]))
    runner.set_epsilon(0.4)
    (rollout,) = runner.sample()
    mask = rollout.columns["action_mask"]
    actions = rollout.columns["actions"]
    assert mask[np.arange(len(actions)), actions].all()
    everything = mask.all(axis=1)
    shares = np.bincount(actions[everything], minlength=4) / everything.sum()
    np.testing.assert_allclose(shares, [0.1, 0.1, 0.1, 0.7], atol=0.05)


def test_a_restored_algorithm_goes_on_with_network_target_and_schedules(one_ray, tmp_path):
    experiment = toy_q("identity", learning_rate=[[0, 1e-2], [5120, 0.0]], target_update_freq=7)
    first = build_algorithm(experiment)
    second = build_algorithm(experiment)
    try:
        for _ in range(6):
            first.train()
        first.save_to_path(str(tmp_path / "checkpoint"))
        second.restore_from_path(str(tmp_path / "checkpoint"))
        saved = weights_of(first)
        restored = weights_of(second)
        assert saved.keys() == restored.keys()
        assert any(name.startswith("target.") for name in saved)
        for name, value in saved.items():
            np.testing.assert_array_equal(restored[name], value)
        assert second.agent_steps() == first.agent_steps() == 6 * 256
        assert second.learner_group._learner._updates == first.learner_group._learner._updates > 0
        first_result = first.train()
        second_result = second.train()
        # Its memory is empty: it plays first. RLlib lists metrics that it has a history of, without
        # a value.
        assert math.isnan(second_result["learners"]["default_policy"].get("qf_loss", math.nan))
        for _ in range(2):
            second_result = second.train()
        rate = [
            r["learners"]["default_policy"]["default_optimizer_learning_rate"]
            for r in (first_result, second_result)
        ]
        assert rate == pytest.approx(
            [1e-2 * (1 - 6 * 256 / 5120), 1e-2 * (1 - 8 * 256 / 5120)], abs=1e-9
        )
    finally:
        first.stop()
        second.stop()


@pytest.mark.parametrize(
    "options", [{}, {"num_atoms": 21, "v_min": 0.0, "v_max": 1.0, "noisy": True}]
)
def test_a_run_exports_a_policy_whose_logits_are_q_values(one_ray, tmp_path, options):
    import onnxruntime

    from agents import bundle

    result = train(toy_q("identity", **options), runs_dir=tmp_path)
    assert result.finished
    assert result.metrics["episode_return_mean"] >= 0.95
    module = module_of(RunFolder(result.path).checkpoints()[-1])
    loaded = bundle.load(result.bundle)
    session = onnxruntime.InferenceSession(loaded.onnx)
    lit = np.eye(4, dtype=np.uint8)[:, None, None, :] * 255
    logits, values = session.run(["logits", "values"], {"observations": lit})
    # One step an episode, so the right action is worth 1 and all others 0.
    np.testing.assert_allclose(logits, np.eye(4), atol=0.15)
    np.testing.assert_allclose(values, logits.max(axis=1))
    seen = np.random.default_rng(0).integers(0, 256, (1000, 1, 1, 4), dtype=np.uint8)
    ours = module.forward_inference({"obs": torch.from_numpy(seen)})["action_dist_inputs"].numpy()
    np.testing.assert_allclose(session.run(["logits"], {"observations": seen})[0], ours, atol=1e-4)
    assert loaded.card.algorithm == "dqn"


def test_an_interrupted_run_goes_on_where_it_stopped(one_ray, tmp_path):
    experiment = toy_q("identity").override(["budget.total_agent_steps=10240"])
    first = train(experiment, runs_dir=tmp_path, on_iteration=lambda row: row["iteration"] == 30)
    assert not first.finished
    second = train(resume=first.path)
    assert second.finished
    curve = RunFolder(first.path).curve()
    assert [int(row["agent_steps"]) for row in curve] == [256 * k for k in range(1, len(curve) + 1)]
    # Epsilon is what it was, and so is the network: it doesn't begin anew.
    assert float(curve[31]["episode_return_mean"]) > 0.9


def test_the_same_seed_gives_the_same_numbers(one_ray):
    def curve():
        algorithm = build_algorithm(toy_q("corridor", **{**RAINBOW, "epsilon": 0.1}))
        try:
            return [
                algorithm.train().get("learners", {}).get("default_policy", {}).get("qf_loss")
                for _ in range(5)
            ]
        finally:
            algorithm.stop()

    first = curve()
    assert first == curve()
    assert first[-1] is not None


@pytest.mark.parametrize("name", ["procgen-dqn", "procgen-apex"])
@pytest.mark.parametrize("game", ["coinrun", "starpilot", "bigfish", "fruitbot"])
def test_the_atoms_reach_as_far_as_the_game_pays(name, game):
    experiment = Experiment.load(name, [f"env.name=procgen/{game}"])
    options = experiment.policy_network.options
    shaped_unit = (
        float(shaped(np.ones(1, np.float32))[0])
        if "shape_rewards" in experiment.env.options
        else 1.0
    )
    # A game that pays 1 at a time, as most do, up to its highest return.
    assert options["v_max"] >= EASY[game].highest * shaped_unit
    assert options["v_max"] < 1.3 * EASY[game].highest * shaped_unit
    assert options["v_min"] < min(0, 2 * EASY[game].blind)


def test_atoms_that_were_set_stay_and_those_of_an_unknown_world_must_be():
    experiment = Experiment.load("procgen-dqn", ["dqn.v_min=-1", "dqn.v_max=30"])
    options = experiment.policy_network.options
    assert (options["v_min"], options["v_max"]) == (-1, 30)
    with pytest.raises(ConfigError, match=r"what battlesnake can pay isn't known.*dqn\.v_max"):
        Experiment.load("battlesnake-dqn", ["dqn.num_atoms=51"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"v_min": 2.0, "v_max": 1.0}, "less than v_max"),
        ({"epsilon": 1.5}, "dqn.epsilon"),
        ({"n_step": 0}, "dqn.n_step"),
        ({"tau": 2.0}, "dqn.tau"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        toy_q("identity", **settings)


def test_a_policys_card_has_the_atoms_that_were_derived():
    experiment = Experiment.load(
        "procgen-dqn", ["env.name=procgen/starpilot", "env.options.num_games=1"]
    )
    with closing(single_world(experiment)) as world:
        card = _card(experiment, world)
    assert (card["config"]["dqn"]["v_min"], card["config"]["dqn"]["v_max"]) == (-16, 64)
    assert card["network"]["options"]["v_max"] == 64
