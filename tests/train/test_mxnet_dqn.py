from __future__ import annotations

import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from agents import make, networks
from agents.agent import Agent
from agents.measure.evaluation import play_games
from agents.policy import Policy
from envs.common.errors import ConfigError, UnknownNameError
from tests.train.experiments import toy_q
from tests.train.small_worlds import best_masked_return
from tests.train.worlds.test_self_play import plain_values
from train.config import Experiment, NetworkSettings
from train.run import train
from train.runs.folder import RunError
from train.settings import MXNetDQNSettings
from train.worlds.state import PROGRESS, progress_of

if find_spec("mxnet") is None:
    pytest.skip("the extra [mxnet] is not installed", allow_module_level=True)

from agents.networks.mxnet_starter_pack import set_weights, weights_of
from train.mxnet_dqn import COUNTERS, MXNetDQN, QLearner, Replay, Transitions

SMALL = {
    "starting_channels": 8,
    "number_of_conv_layers": 1,
    "number_of_dense_layers": 1,
    "number_of_hidden_states": 32,
}


PLANES = {"identity": 4, "masked-bandit": 4, "corridor": 11, "counting": 8}


def toy(
    world: str,
    *,
    kind: str = "concat",
    steps: int = 20_000,
    options: dict | None = None,
    **settings,
) -> Experiment:
    """An experiment on a world of `tests.train.small_worlds`."""
    chosen = {
        "buffer_size": 5000,
        "update_every": 64,
        "lr_start": 5e-3,
        "eps_decay": 0.9997,
        "eps_end": 0.0,
        "target_update_every": 20,
        "warmup": 500,
        "num_steps": 10,
        **settings,
    }
    return Experiment.from_dict(
        {
            **toy_q(world, options=options).to_dict(),
            "algorithm": "mxnet_dqn",
            "network": {
                "name": kind,
                "options": {**SMALL, "kernel_size": 1, "scales": [1 / 255] * PLANES[world]},
            },
            "mxnet_dqn": chosen,
            "budget": {"total_agent_steps": steps},
        }
    )


def best_return(experiment: Experiment, iterations: int, *, enough: float = 0.98) -> float:
    algorithm = MXNetDQN(experiment)
    best = 0.0
    for _ in range(iterations):
        played = algorithm.train()["env_runners"]
        best = max(best, played.get("episode_return_mean", 0.0))
        if best >= enough:
            break
    algorithm.stop()
    return best


@pytest.mark.parametrize("kind", ["attention", "concat", "vision"])
def test_each_network_solves_identity(kind):
    assert best_return(toy("identity", kind=kind, gamma=0.0), 60) >= 0.98


def test_soft_updates_of_the_target_learn_to_walk_ten_cells():
    experiment = toy(
        "corridor", gamma=0.9, tau=0.05, target_update_every=0, eps_decay=0.99, update_every=32
    )
    assert best_return(experiment, 60) >= 0.98


def test_masks_keep_it_from_actions_that_are_no_use():
    """The world asserts that no masked action is taken. The actions 1, 2 and 3 in any other order
    earn at least 6 % less.
    """
    enough = 0.98 * best_masked_return()
    assert (
        best_return(toy("masked-bandit", gamma=0.0, options={"num_games": 128}), 60, enough=enough)
        >= enough
    )


def learner(**settings) -> QLearner:
    return QLearner(
        NetworkSettings(name="concat", options=SMALL),
        MXNetDQNSettings(**settings),
        (5, 5, 4),
        3,
        seed=3,
    )


def batch(size: int = 32) -> Transitions:
    rng = np.random.default_rng(0)
    shown = rng.integers(0, 5, (2, size, 5, 5, 4)).astype(np.uint8)
    masks = rng.random((size, 3)) < 0.5
    masks[:, 1] = True
    rewards = rng.normal(size=size).astype(np.float32)
    return Transitions(
        shown[0], rng.integers(0, 3, size), rewards, shown[1], rng.random(size) < 0.3, masks
    )


def torch_twin(made: QLearner) -> torch.nn.Module:
    twin = networks.build("starter-pack", (5, 5, 4), 3, kind="concat", **SMALL)
    twin.load_state_dict(
        {name: torch.from_numpy(value) for name, value in weights_of(made.target).items()}
    )
    return twin.eval()


def test_the_target_begins_as_the_network():
    made = learner()
    for name, weights in weights_of(made.network).items():
        np.testing.assert_array_equal(weights, weights_of(made.target)[name])


def test_targets_value_the_next_state_by_the_target_network():
    made = learner(gamma=0.9)
    given = batch()
    set_weights(made.target, {name: 2 * value for name, value in weights_of(made.target).items()})
    with torch.inference_mode():
        following = torch_twin(made)(torch.from_numpy(given.next_observations))[0].numpy()
    for k, target in enumerate(made.targets(given)):
        allowed = [following[k, a] for a in range(3) if given.next_masks[k, a]]
        expected = given.rewards[k] + (0.0 if given.terminated[k] else 0.9 * max(allowed))
        assert target == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("tau", [0.25, 1.0])
def test_the_target_follows_softly(tau):
    made = learner(tau=tau, lr_start=0.1)
    before = weights_of(made.target)
    made.update(batch())
    network = weights_of(made.network)
    after = weights_of(made.target)
    for name, old in before.items():
        np.testing.assert_allclose(after[name], old + tau * (network[name] - old), atol=1e-6)


def test_the_target_is_copied_after_so_many_updates():
    made = learner(target_update_every=2, lr_start=0.1)
    first = weights_of(made.target)["output.bias"]
    made.update(batch())
    np.testing.assert_array_equal(weights_of(made.target)["output.bias"], first)
    made.update(batch())
    np.testing.assert_array_equal(
        weights_of(made.target)["output.bias"], weights_of(made.network)["output.bias"]
    )


def test_the_learning_rate_falls_in_steps():
    made = learner(lr_start=0.1, lr_step=2, lr_factor=0.5)
    rates = []
    for _ in range(5):
        rates.append(made.learning_rate)
        made.update(batch())
    assert rates == pytest.approx([0.1, 0.1, 0.05, 0.05, 0.025])


def test_replay_forgets_the_oldest_and_keeps_what_belongs_together():
    replay = Replay(50, np.zeros((5, 5, 4), np.uint8), 3)
    given = batch(20)
    for number in range(4):
        replay.add(
            given._replace(
                rewards=np.arange(20, dtype=np.float32) + 20 * number, actions=np.arange(20) % 3
            )
        )
    drawn = replay.sample(5000, np.random.default_rng(0))
    assert len(replay) == 50
    assert sorted(set(drawn.rewards)) == list(range(30, 80))
    np.testing.assert_array_equal(drawn.actions, drawn.rewards % 20 % 3)
    np.testing.assert_array_equal(
        drawn.next_masks, given.next_masks[(drawn.rewards % 20).astype(int)]
    )


def test_exploration_draws_evenly_among_the_allowed_actions_and_falls_with_each_game():
    algorithm = MXNetDQN(toy("masked-bandit", eps_decay=0.5, eps_start=1.0, eps_end=0.125))
    mask = np.tile([True, True, False, True], (64, 1))
    algorithm.world.action_mask[:] = mask
    counts = np.bincount(np.concatenate([algorithm.choose() for _ in range(100)]), minlength=4)
    assert counts[2] == 0
    np.testing.assert_allclose(counts[[0, 1, 3]] / 6400, 1 / 3, atol=0.03)
    seen = []
    for games in (0, 1, 2, 10):
        algorithm.games = games
        seen.append(algorithm.epsilon)
    assert seen == [1.0, 0.5, 0.25, 0.125]


def test_what_the_memory_holds_of_a_truncated_episode_is_its_own_end():
    # Action 1 goes on by a cell, action 0 ends the episode; after three turns all begin at cell 0
    # again.
    algorithm = MXNetDQN(toy("corridor", options={"max_turns": 3}))
    for _ in range(30):
        algorithm.play()
    kept = algorithm.replay.sample(2000, np.random.default_rng(0))
    now, later = (
        shown.reshape(-1, 11).argmax(axis=1)
        for shown in (kept.observations, kept.next_observations)
    )
    np.testing.assert_array_equal(kept.terminated, kept.actions == 0)
    assert (now[~kept.terminated] == 2).any()
    np.testing.assert_array_equal(later[~kept.terminated], now[~kept.terminated] + 1)


def test_what_the_memory_holds_belongs_together():
    # Each row shows a number that goes up by one; after an ending the world shows the next
    # episode's.
    algorithm = MXNetDQN(toy("counting", options={"num_games": 8}))
    for _ in range(40):
        algorithm.play()
    kept = algorithm.replay.sample(2000, np.random.default_rng(0))
    now, later = (
        shown.reshape(-1, 8).view(np.int64)[:, 0]
        for shown in (kept.observations, kept.next_observations)
    )
    np.testing.assert_array_equal(later, now + 1)
    np.testing.assert_array_equal(kept.rewards, now % 7)
    np.testing.assert_array_equal(kept.terminated, now % 10 == 0)


def snakes(minutes: float, **env) -> Experiment:
    return Experiment.load("battlesnake-mxnet", [f"budget.max_minutes={minutes}"]).override(
        [f"env.options.{name}={value}" for name, value in env.items()]
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    experiment = snakes(0.02, width=7, height=7, num_snakes=2, num_games=8).override(
        ["mxnet_dqn.warmup=64", "mxnet_dqn.num_steps=20", "network.name=attention"]
    )
    return train(experiment, runs_dir=tmp_path_factory.mktemp("runs"))


def test_a_run_leaves_a_policy_that_plays_like_any_other(run):
    assert run.finished
    policy = Policy.load(run.bundle)
    results = play_games([policy, policy], num_games=4, width=7, height=7)
    assert results.turns.min() >= 1
    assert "attention" in str(policy.card.network)


def test_mxnet_torch_and_onnx_choose_the_same_actions(run):
    experiment = Experiment.load(run.path / "config.yaml")
    algorithm = MXNetDQN(experiment)
    newest = max((run.path / "checkpoints").iterdir())
    algorithm.restore_from_path(str(newest))
    world = algorithm.world
    seen = []
    while sum(map(len, seen)) < 1000:
        algorithm.play()
        seen.append(world.observations[world.valid])
    states = np.concatenate(seen)
    values = algorithm.learner.q_values(states)
    top = np.sort(values, axis=1)
    clear = top[:, -1] - top[:, -2] > 2e-4
    assert clear.mean() > 0.9
    for backend in ("onnx", "torch"):
        logits, best = Policy.load(run.bundle, backend).logits(states)
        np.testing.assert_allclose(logits, values, atol=1e-4)
        np.testing.assert_allclose(best, values.max(axis=1), atol=1e-4)
        np.testing.assert_array_equal(logits.argmax(axis=1)[clear], values.argmax(axis=1)[clear])


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"updates": 1}', '{"updates": 1, "games": 2}' + " " * 2000]
)
def test_damaged_counters_are_refused_before_much_is_read(run, tmp_path, text):
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(max((run.path / "checkpoints").iterdir()), checkpoint)
    (checkpoint / COUNTERS).write_text(text)
    with pytest.raises(RunError, match=r"learner\.json can't be read"):
        MXNetDQN(Experiment.load(run.path / "config.yaml")).restore_from_path(str(checkpoint))


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    experiment = toy("identity", steps=6400)
    stopped = train(experiment, runs_dir=tmp_path, on_iteration=lambda row: row["iteration"] == 3)
    assert not stopped.finished
    first = MXNetDQN(experiment)
    first.restore_from_path(str(max((stopped.path / "checkpoints").iterdir())))
    assert first.learner.updates > 0
    assert first.games == 3 * 640
    assert first.learner.trainer.learning_rate == 5e-3
    twin = MXNetDQN(experiment)
    beginning = MXNetDQN(experiment)
    twin.restore_from_path(str(max((stopped.path / "checkpoints").iterdir())))
    np.testing.assert_array_equal(first.world.observations, twin.world.observations)
    assert (first.world.observations != beginning.world.observations).any()
    assert train(resume=stopped.path).metrics["agent_steps"] == 6400


@pytest.mark.parametrize("kept", [True, False])
def test_a_resumed_run_has_the_pool_and_the_stage_of_before(tmp_path, kept):
    """A checkpoint without the world's progress is one of an older version."""
    window = {"view": "window", "radius": 5, "rotate": True}
    board = {
        "name": "battlesnake",
        "options": {"num_snakes": 2, "width": 7, "height": 7, "observation": window},
    }
    stages = [
        {**board, "until": 30},
        {**board, "options": {**board["options"], "width": 5, "height": 5}},
    ]
    league = {"opponents": ["greedy"], "share": 1.0, "past_every": 1, "most_past": 2}
    env = {"name": "curriculum", "options": {"num_games": 4, "stages": stages, "self_play": league}}
    experiment = Experiment.from_dict({**snakes(1).to_dict(), "env": env}).override(
        ["mxnet_dqn.num_steps=20"]
    )
    begun = MXNetDQN(experiment)
    resumed = MXNetDQN(experiment)
    for _ in range(3):
        begun.train()
    begun.save_to_path(str(tmp_path))
    if not kept:
        (tmp_path / PROGRESS).unlink()
    resumed.restore_from_path(str(tmp_path))
    progress, found = (plain_values(progress_of(algorithm.world)) for algorithm in (begun, resumed))
    assert progress["Curriculum"]["stage"] == 1
    assert len(progress["Curriculum"]["world"]["SelfPlay"]["pool"]["past"]) == 2
    if kept:
        np.testing.assert_equal(found, progress)
        resumed.train()
    else:
        assert resumed.world.stage == 0
        assert resumed.learner.updates == begun.learner.updates


def test_mistakes_are_told_before_anything_starts(tmp_path):
    with pytest.raises(UnknownNameError, match="attention"):
        train(toy("identity", kind="atention"), runs_dir=tmp_path)
    with pytest.raises(ConfigError, match="single process"):
        Experiment.load("battlesnake-mxnet", ["num_env_runners=2"])
    with pytest.raises(ConfigError, match="eps_decay"):
        Experiment.load("battlesnake-mxnet", ["mxnet_dqn.eps_decay=2"])


class UniformMoves(Agent):
    """Any of the four moves, also into a wall: what the starter pack's own random snake does."""

    name = "uniform"

    def act_batch(self, state, boards, slots):
        return (
            np.random.default_rng(int(state.arrays.turn.sum()))
            .integers(0, 4, len(boards))
            .astype(np.int8)
        )


@pytest.mark.long
def test_it_learns_to_live_five_times_as_long_as_random_on_seven_by_seven(tmp_path):
    experiment = snakes(4, width=7, height=7, num_snakes=1)
    result = train(experiment, runs_dir=tmp_path)
    trained, careful, chance = (
        play_games([agent], num_games=200, width=7, height=7).turns.mean()
        for agent in (Policy.load(result.bundle), make("random"), UniformMoves())
    )
    assert trained >= 5 * chance
    # Certain death is masked for the policy, as for the careful one, which lives far longer for
    # that alone.
    assert trained >= 2 * careful
