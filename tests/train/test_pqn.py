"""PQN: its returns and loss against the paper's formulas, and worlds whose best play is known."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch

from agents import bundle
from envs.common.errors import ConfigError
from tests.train.experiments import best_return, toy
from tests.train.small_worlds import best_masked_return
from train.config import Experiment
from train.pqn import PQNConfig, PQNRunner, pqn_loss
from train.run import train
from train.settings import PQNSettings

EPSILON = [[0, 1.0], [8000, 0.0]]


def toy_pqn(world, **settings):
    return toy(world, algorithm="pqn", **{"epsilon": EPSILON, **settings})


def snakes():
    small = ["env.options.num_games=8", "network.options.hidden_sizes=[16]"]
    return Experiment.load("battlesnake-pqn", [*small, "pqn.bf16=false", "pqn.num_threads=1"])


class NotingRunner(PQNRunner):
    """Keeps what the returns follow from."""

    def collate(self, columns, cut, steps):
        self.noted = {name: column.copy() for name, column in columns.items()}
        self.truncated = {
            entry: observation
            for entries, observations in cut
            for entry, observation in zip(entries.tolist(), observations, strict=True)
        }
        return super().collate(columns, cut, steps)

    def highest(self, observations, mask=None):
        """The highest Q value of each row, float64 (n,), over what `mask` allows."""
        with torch.inference_mode():
            values = self.module.rollout(torch.from_numpy(observations))[0].double().numpy()
        if mask is not None:
            values = np.where(mask, values, -np.inf)
        return values.max(-1)


def returns_by_hand(runner, gamma, lam):
    """Equation 5 of arXiv 2407.04811, entry by entry from the end."""
    noted = runner.noted
    env = runner.env
    highest = runner.highest(noted["obs"], noted.get("action_mask"))
    next_value = runner.highest(env.observations, env.action_mask)
    next_return = next_value.copy()
    expected = np.empty(len(highest))
    for entry in reversed(range(len(highest))):
        row = noted["rows"][entry]
        if noted["ended"][entry]:
            last = runner.truncated.get(entry)
            next_value[row] = 0.0 if last is None else runner.highest(last[None])[0]
            next_return[row] = next_value[row]
        mixed = lam * next_return[row] + (1 - lam) * next_value[row]
        expected[entry] = next_return[row] = noted["rewards"][entry] + gamma * mixed
        next_value[row] = highest[entry]
    return expected


@pytest.mark.parametrize(
    "experiment",
    [snakes(), toy_pqn("corridor", options={"max_turns": 8}, bf16=False)],
    ids=["masked", "truncated"],
)
def test_targets_are_lambda_returns_over_the_highest_allowed_q_values(one_ray, experiment):
    runner = NotingRunner(config=PQNConfig.from_experiment(experiment), worker_index=0)
    # Q values of a new network hardly differ, and masks would hide nothing.
    with torch.no_grad():
        runner.module.network.advantage.weight.mul_(100.0)
    settings = experiment.settings
    for _ in range(2):
        (fragment,) = runner.sample()
        expected = returns_by_hand(runner, settings.gamma, settings.gae_lambda)
        np.testing.assert_allclose(fragment.columns["value_targets"], expected, atol=1e-5)
    # What the two worlds are there for.
    if experiment.name == "battlesnake-pqn":
        assert not runner.noted["action_mask"].all()
        assert not runner.env.action_mask.all()
    else:
        assert runner.truncated


def test_the_loss_is_half_the_squared_error_of_the_actions_taken():
    q_values = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    batch = {"actions": torch.tensor([1, 0]), "value_targets": torch.tensor([0.0, 4.0])}
    loss, metrics = pqn_loss(q_values, batch)
    loss.backward()
    assert loss.item() == (2.0**2 + 1.0**2) / 4
    assert metrics["td_error_mean"] == 1.5
    assert metrics["qf_mean"] == 2.5
    # The gradient of (q - target)² / 2, over the batch's mean; none for the action not taken.
    assert q_values.grad.tolist() == [[0.0, 1.0], [-0.5, 0.0]]


@pytest.mark.parametrize("options", [{}, {"concurrency": True, "dueling": False}])
def test_solves_the_identity_world(one_ray, options):
    assert best_return(toy_pqn("identity", **options), 60)[0] >= 0.95


def test_solves_the_masked_bandit_where_the_world_refuses_masked_actions(one_ray):
    enough = 0.98 * best_masked_return()
    experiment = toy_pqn("masked-bandit", options={"num_games": 256}, num_steps=4)
    assert best_return(experiment, 100, enough=enough)[0] >= enough


def test_solves_the_corridor_whose_rows_end_at_different_times(one_ray):
    assert best_return(toy_pqn("corridor", gamma=0.95), 60)[0] >= 0.95


def test_random_actions_are_as_frequent_as_epsilon_says_and_uniform_over_the_allowed(one_ray):
    experiment = toy_pqn("masked-bandit", num_steps=200, bf16=False)
    runner = PQNRunner(config=PQNConfig.from_experiment(experiment), worker_index=0)
    with torch.no_grad():
        runner.module.network.advantage.bias.copy_(torch.tensor([0.0, 1.0, 2.0, 3.0]))
    fragment, _ = runner.play(epsilon=0.4)
    mask = fragment.columns["action_mask"]
    actions = fragment.columns["actions"]
    assert mask[np.arange(len(actions)), actions].all()
    everything = mask.all(axis=1)
    shares = np.bincount(actions[everything], minlength=4) / everything.sum()
    np.testing.assert_allclose(shares, [0.1, 0.1, 0.1, 0.7], atol=0.05)


@pytest.mark.parametrize("setting", ["clip_coef", "ent_coef", "target_kl", "lstm_units"])
def test_settings_of_a_policy_are_refused(setting):
    with pytest.raises(ConfigError, match=f"pqn.{setting} is 3"):
        PQNSettings(**{setting: 3})


def test_a_run_exports_a_policy_whose_logits_are_q_values(one_ray, tmp_path):
    result = train(toy_pqn("identity"), runs_dir=tmp_path)
    assert result.bundle is not None
    loaded = bundle.load(result.bundle)
    session = onnxruntime.InferenceSession(loaded.onnx)
    lit = np.eye(4, dtype=np.uint8)[:, None, None, :] * 255
    logits, values = session.run(["logits", "values"], {"observations": lit})
    # One step an episode, so the right action is worth 1 and all others 0.
    np.testing.assert_allclose(logits, np.eye(4), atol=0.15)
    np.testing.assert_allclose(values, logits.max(axis=1))
    assert loaded.card.algorithm == "pqn"
