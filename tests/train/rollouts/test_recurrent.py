"""PPO with a memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load

import envs
from agents import bundle, networks
from agents.bundle import BundleError
from agents.policy import onnx_forward, onnx_steps
from envs.common.errors import ConfigError
from tests.train.experiments import best_return, toy
from tests.train.small_worlds import ToyWorld
from train.config import Experiment
from train.ppo import PPOConfig, PPORunner
from train.rollouts.recurrent import (
    STATE,
    STRETCH,
    shuffled_stretches,
    stretch_lengths,
)
from train.run import check, train
from train.worlds.build import make_world, world_options


class RecallWorld(ToyWorld):
    """Shows one of two lamps, then `delay` times nothing, then asks which it was: 1 for naming it.
    Without a memory 1/2.

    Episodes begin at different times, so that rollouts cut them anywhere; `cut` of them are cut off
    before the question."""

    def __init__(self, *, num_games: int = 32, delay: int = 2, cut: float = 0.0) -> None:
        super().__init__(num_games=num_games, rows_per_game=1, planes=3, num_actions=2)
        self.delay = delay
        self.cut = cut
        self.clock = np.zeros(num_games, np.int64)
        self.lamps = np.zeros(num_games, np.int64)

    def restart(self, seed: int | None = None) -> None:
        super().restart(seed)
        self.clock[:] = 0
        self._begin(np.arange(self.num_envs))

    def _begin(self, rows: np.ndarray) -> None:
        self.clock[rows] = 0
        self.lamps[rows] = self.rng.integers(0, 2, len(rows))
        self._show(rows)

    def _show(self, rows: np.ndarray) -> None:
        self.observations[rows] = 0
        self.observations[rows, 0, 0, self.lamps[rows]] = 255 * (self.clock[rows] == 0)
        self.observations[rows, 0, 0, 2] = 255 * (self.clock[rows] == self.delay + 1)

    def advance(self, actions: np.ndarray) -> None:
        asked = self.clock == self.delay + 1
        self.rewards[:] = asked & (actions == self.lamps)
        self.terminated[:] = asked
        self.truncated[:] = ~asked & (self.rng.random(self.num_envs) < self.cut)
        self._book(self.valid)
        self.clock += 1
        self._show(np.arange(self.num_envs))
        self.final_observations[:] = self.observations
        self._begin(np.flatnonzero(self.terminated | self.truncated))


envs.register("recall", RecallWorld)


def recall(units: int, *, world: str = "recall", num_steps: int = 9, **options: Any) -> Experiment:
    made = toy(
        world,
        lstm_units=units,
        num_steps=num_steps,
        bf16=False,
        options={"num_games": 64, **options},
    ).to_dict()
    return Experiment.from_dict(
        {**made, "env": {**made["env"], "imports": ["tests.train.rollouts.test_recurrent"]}}
    )


def runner_of(experiment: Experiment) -> PPORunner:
    torch.manual_seed(0)
    return PPORunner(config=PPOConfig.from_experiment(experiment), worker_index=0)


def test_a_memory_solves_what_no_network_without_one_can(one_ray):
    best, _ = best_return(recall(16), 60)
    assert best >= 0.95
    without, _ = best_return(recall(0), 20)
    # The lamp is no longer seen when it is asked for: half of the answers are right, whatever is
    # learned.
    assert without < 0.75


def test_going_through_stretches_is_the_same_as_going_step_by_step():
    torch.manual_seed(0)
    network = networks.build("recurrent", (1, 1, 3), 2, body_options={"hidden_sizes": [8]}, units=5)
    lengths = torch.tensor([3, 1, 4])
    seen = torch.randint(0, 256, (8, 1, 1, 3)).to(torch.uint8)
    state = torch.randn(3, 10)
    logits, values, after = network(seen, lengths, state)
    start = 0
    for k, length in enumerate(lengths.tolist()):
        carried = state[k : k + 1]
        for entry in range(start, start + length):
            one, value, carried = network(seen[entry : entry + 1], torch.tensor([1]), carried)
            torch.testing.assert_close(one[0], logits[entry])
            torch.testing.assert_close(value[0], values[entry])
        torch.testing.assert_close(carried[0], after[k])
        start += length


def test_learning_finds_the_probabilities_and_values_that_the_rollout_had():
    """Rows that wait, episodes cut off, several rollouts: else ratios wouldn't begin at 1."""
    for experiment in (recall(7, cut=0.2), recall(7, world="corridor", max_turns=4, num_games=8)):
        runner = runner_of(experiment)
        for _ in range(3):
            (fragment,) = runner.sample()
            columns = {
                name: torch.from_numpy(column.copy()) for name, column in fragment.columns.items()
            }
            order = torch.cat(
                shuffled_stretches(columns[STRETCH], 3, torch.Generator().manual_seed(0))
            )
            assert sorted(order.tolist()) == list(range(len(fragment)))
            batch = {name: column[order] for name, column in columns.items()}
            with torch.inference_mode():
                answers = runner.module.forward_train(batch)
            chosen = (
                torch.log_softmax(answers["action_dist_inputs"], -1)
                .gather(1, batch["actions"][:, None])
                .squeeze(1)
            )
            torch.testing.assert_close(chosen, batch["action_logp"], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(answers["vf_preds"], batch["vf_preds"], atol=1e-5, rtol=1e-5)
            # And something is remembered.
            assert (columns[STATE].abs().sum(1) > 0).float().mean() > 0.3


@pytest.mark.parametrize("num_parts", [5, 12])
def test_where_there_are_fewer_stretches_than_parts_each_part_gets_a_piece(num_parts):
    """Each entry is learned once, each piece from the state that its first entry was played
    with.
    """
    runner = runner_of(recall(7, num_steps=16, num_games=2, delay=100))
    columns = {
        name: torch.from_numpy(column.copy()) for name, column in runner.sample()[0].columns.items()
    }
    assert len(columns[STRETCH].unique()) == 2
    parts = shuffled_stretches(columns[STRETCH], num_parts, torch.Generator().manual_seed(0))
    assert sorted(torch.cat(parts).tolist()) == list(range(32))
    assert min(map(len, parts)) > 0
    for order in parts:
        batch = {name: column[order] for name, column in columns.items()}
        with torch.inference_mode():
            answers = runner.module.forward_train(batch)
        torch.testing.assert_close(answers["vf_preds"], batch["vf_preds"], atol=1e-5, rtol=1e-5)


def test_learning_goes_on_with_fewer_stretches_than_minibatches(one_ray):
    experiment = recall(4, num_steps=16, num_games=2, delay=100).override(["ppo.num_minibatches=8"])
    _, told = best_return(experiment, 2)
    assert np.isfinite(told["learners"]["default_policy"]["policy_loss"])


def test_what_was_remembered_ends_with_the_episode_and_lasts_over_rollouts():
    runner = runner_of(recall(4, num_steps=3, num_games=2, delay=2))
    runner.sample()
    second = runner.sample()[0].columns
    # Four steps an episode, three a rollout: the second rollout begins with an episode's last step,
    # the others are of the next.
    state = second[STATE].reshape(3, 2, 8)
    assert (np.abs(state[0]).sum(1) > 0).all()
    assert (state[1] == 0).all()
    assert (np.abs(state[2]).sum(1) > 0).all()
    assert stretch_lengths(torch.from_numpy(np.sort(second[STRETCH]))).tolist() == [1, 1, 2, 2]


def stepped_by_hand(network, seen, begins, state):
    """Logits and state after one step of each row, by the forward pass that learning uses, one row
    after the other.
    """
    logits = []
    for row in range(len(seen)):
        before = torch.zeros_like(state[row]) if begins[row] else state[row]
        one, _, after = network(
            torch.from_numpy(seen[row : row + 1]), torch.tensor([1]), before[None]
        )
        logits.append(one)
        state[row] = after[0]
    return torch.cat(logits).numpy()


def test_an_exported_policy_remembers_as_the_trained_one_does(one_ray, tmp_path):
    """Through onnxruntime and by hand in torch, from the same bundle: the same logits over 200
    steps with many endings.
    """
    experiment = recall(16, cut=0.1)
    result = train(
        Experiment.from_dict({**experiment.to_dict(), "budget": {"total_agent_steps": 3000}}),
        runs_dir=tmp_path,
    )
    made = bundle.load(result.bundle)
    world = make_world({**world_options(experiment), "num_games": 8})
    network = networks.build(
        "recurrent", world.single_observation_space.shape, 2, **made.card.network["options"]
    )
    network.load_state_dict(load(made.weights))
    step = onnx_steps(made, 1)
    state = torch.zeros(8, 32)
    world.restart(1)
    begins = np.ones(8, bool)
    apart = 0.0
    endings = 0
    with torch.inference_mode():
        for _ in range(200):
            expected = stepped_by_hand(network, world.observations, begins, state)
            logits = step(world.observations, begins)
            np.testing.assert_allclose(logits, expected, atol=1e-5)
            # One that had forgotten everything would answer otherwise.
            forgetful = network(
                torch.from_numpy(world.observations),
                torch.ones(8, dtype=torch.int64),
                torch.zeros(8, 32),
            )
            apart = max(apart, np.abs(forgetful[0].numpy() - logits).max())
            world.advance(logits.argmax(1))
            begins = world.terminated | world.truncated
            endings += begins.sum()
    assert apart > 1e-2
    assert endings > 200


def test_it_is_measured_with_its_memory_while_it_learns(one_ray, tmp_path):
    experiment = recall(16).to_dict() | {
        "evaluation": {"every_iterations": 10, "games": 256},
        "budget": {"total_agent_steps": 40 * 9 * 64},
        "stop": {"metric": "evaluation_return_mean", "at_least": 0.95},
    }
    metrics = train(Experiment.from_dict(experiment), runs_dir=tmp_path).metrics
    # Without it half the answers are wrong.
    assert metrics["evaluation_return_mean"] > 0.9


def test_what_looks_at_each_observation_by_itself_refuses_a_memory(one_ray, tmp_path):
    experiment = recall(4).to_dict() | {"budget": {"total_agent_steps": 1}}
    made = bundle.load(train(Experiment.from_dict(experiment), runs_dir=tmp_path).bundle)
    with pytest.raises(BundleError, match=r"has a memory.*procsnake.* levels"):
        onnx_forward(made, 1)


def test_what_a_memory_can_not_do_is_refused():
    with pytest.raises(ConfigError, match="symmetries"):
        toy("identity", lstm_units=4, symmetries=True)
    with pytest.raises(ConfigError, match=r"each board by itself.*evaluation: null"):
        check(
            Experiment.load(
                "battlesnake-ppo",
                ["ppo.lstm_units=4", "ppo.symmetries=false", "evaluation={every_minutes: 1}"],
            )
        )
    with pytest.raises(ConfigError, match=r"past selves.*past_every: null"):
        Experiment.load(
            "battlesnake-ppo",
            ["ppo.lstm_units=4", "ppo.symmetries=false", "env.options.self_play={}"],
        )
