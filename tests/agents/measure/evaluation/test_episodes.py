"""Policies of any world, measured by their episodes: a toy world whose every return can be worked
out.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

import envs
from agents import networks
from agents.bundle import export
from agents.measure.evaluation.episodes import (
    ShownEpisode,
    WorldScore,
    at_random,
    bundle_of_a_world,
    drawn,
    evaluate,
    likeliest,
    play,
    table,
    world_of,
)
from agents.measure.evaluation.record import WorldRecord, read_record, read_world_record
from envs.api import BatchEnv
from envs.common.errors import ConfigError
from procsnake import main
from tests.agents.bundles import make_bundle


class Steps(BatchEnv):
    """Action 1 goes on and pays 1, action 2 is masked, action 0 ends the episode; row k may take k
    + 2 steps.
    """

    def __init__(self, *, num_games: int = 2) -> None:
        space = Box(0, 1, (1, 2, 1), np.float32)
        super().__init__(
            num_games=num_games, rows_per_game=1, observation_space=space, action_space=Discrete(3)
        )
        self.action_mask = np.tile([True, True, False], (num_games, 1))
        self.taken = np.zeros(num_games, int)
        self.total = np.zeros(num_games)
        self.ended: list[tuple[int, float, int]] = []

    def restart(self, seed: int | None = None) -> None:
        self.taken[:] = 0
        self.total[:] = 0

    def advance(self, actions: np.ndarray) -> None:
        assert (actions != 2).all()
        self.rewards[:] = actions == 1
        self.taken += 1
        self.total += self.rewards
        self.terminated[:] = (actions == 0) | (self.taken == np.arange(self.num_games) + 2)
        for row in np.flatnonzero(self.terminated):
            self.ended.append((row, self.total[row], self.taken[row]))
            self.taken[row] = self.total[row] = 0

    def drain_episodes(self) -> dict[str, np.ndarray]:
        columns = np.array(self.ended, float).reshape(-1, 3).T
        self.ended = []
        return dict(
            zip(("row", "return", "length"), (columns[0].astype(int), *columns[1:]), strict=True)
        )


@pytest.fixture
def steps(monkeypatch):
    monkeypatch.setattr("envs.registry._FACTORIES", {**envs.registry._FACTORIES, "steps": Steps})


@pytest.fixture
def run(tmp_path):
    """A run whose policy likes action 2 best, which is masked, and action 1 second."""
    network = networks.build("mlp", (1, 2, 1), 3, hidden_sizes=[4])
    with torch.no_grad():
        network.heads.actor.weight.zero_()
        network.heads.actor.bias[:] = torch.tensor([0.0, 1.0, 9.0])
    card = {
        "environment": {"name": "steps", "options": {}},
        "observation": {"type": "steps", "version": 1},
        "observation_shape": [1, 2, 1],
        "observation_dtype": "float32",
        "action": {"type": "steps", "version": 1, "num_actions": 3},
        "network": {"name": "mlp", "options": {"hidden_sizes": [4]}},
        "config": {"env": {"imports": ["my_steps"]}},
    }
    export(tmp_path / "bundle", network=network, card=card)
    return tmp_path


def test_each_row_plays_as_many_episodes(steps):
    returns, lengths = play(Steps(), lambda world, begins: np.ones(2, int), 5, seed=0)
    assert sorted(lengths.tolist()) == [2, 2, 2, 3, 3, 3]
    assert sorted(returns.tolist()) == [2, 2, 2, 3, 3, 3]


def test_a_policy_is_told_where_episodes_begin(steps):
    told = []

    def decide(world, begins):
        told.append(begins.tolist())
        return np.ones(2, int)

    play(Steps(), decide, 2, seed=0)
    assert told == [[True, True], [False, False], [True, False]]


def test_rows_that_never_act_are_not_waited_for():
    class Wider(Steps):
        """The last of three rows is never to act, as those of a curriculum's wider stages."""

        def restart(self, seed: int | None = None) -> None:
            super().restart(seed)
            self.valid[2] = False

        def drain_episodes(self) -> dict[str, np.ndarray]:
            columns = super().drain_episodes()
            return {name: column[columns["row"] < 2] for name, column in columns.items()}

        def advance(self, actions: np.ndarray) -> None:
            assert self.calls < 10, "it waits for ever"
            self.calls += 1
            super().advance(actions)

        calls = 0

    _, lengths = play(Wider(num_games=3), lambda world, begins: np.ones(3, int), 4, seed=0)
    assert sorted(lengths) == [2, 2, 3, 3]


def test_the_policy_takes_what_the_mask_allows_and_random_play_is_worse(steps, run):
    policy, random = evaluate(bundle_of_a_world(str(run)), episodes=2)
    assert (policy.mean_return, policy.mean_length, policy.interval) == (2.5, 2.5, (2.0, 3.0))
    assert random.mean_return < 2.5
    assert random.episodes == 2
    assert "steps" in table([policy, random])


def test_random_play_takes_each_allowed_action_as_often():
    world = Steps(num_games=4000)
    decide = at_random(0)
    chosen = np.bincount(decide(world, np.zeros(4000, bool)), minlength=3)
    assert chosen[2] == 0
    assert abs(chosen[0] - 2000) < 150


def test_snakes_and_names_of_agents_play_battlesnake(tmp_path):
    assert bundle_of_a_world("flood") is None
    assert bundle_of_a_world("no/such/run") is None
    assert (
        bundle_of_a_world("alphabeta?" + "&".join(f"weights.w{number}=1" for number in range(40)))
        is None
    )
    assert bundle_of_a_world(str(make_bundle(tmp_path / "snake"))) is None


def test_a_world_that_nothing_registers_says_how_to_register_it(run):
    with pytest.raises(
        ConfigError,
        match=(
            r"world 'steps', which isn't registered here.*\(its configuration says \['my_steps'\]"
        ),
    ):
        world_of(bundle_of_a_world(str(run)), num_games=1)


@pytest.mark.parametrize("env", [None, [], 5, {}])
def test_a_world_of_a_card_without_a_configuration_is_one_line(run, capsys, env):
    card = json.loads((run / "bundle" / "card.json").read_text())
    (run / "bundle" / "card.json").write_text(json.dumps({**card, "config": {"env": env}}))
    assert main(["episodes", str(run)]) == 2
    assert "--imports MODULE (its configuration says unknown)" in capsys.readouterr().err


def test_an_episode_tells_what_came_of_it(steps, run):
    bundle = bundle_of_a_world(str(run))
    episode = ShownEpisode(world_of(bundle, num_games=1), likeliest(bundle), seed=0)
    assert len(list(episode.pictures())) == 2
    assert (episode.episode_return, episode.length, episode.ended) == (2.0, 2, True)
    cut = ShownEpisode(world_of(bundle, num_games=1), likeliest(bundle), seed=0, most_steps=1)
    assert len(list(cut.pictures())) == 1
    assert str(cut) == "return 1 after 1 steps, then it was cut off"


def test_actions_are_drawn_by_their_probability_among_those_that_the_mask_allows(steps, run):
    world = Steps(num_games=20_000)
    actions = drawn(bundle_of_a_world(str(run)), np.random.default_rng(0))(
        world, np.ones(20_000, bool)
    )
    # The logits are 0, 1 and 9, and the last is masked.
    assert set(actions) == {0, 1}
    assert actions.mean() == pytest.approx(np.e / (1 + np.e), abs=4 * 0.44 / 20_000**0.5)


def test_what_was_measured_is_kept_for_the_report_until_the_policy_is_another(run):
    score = WorldScore(
        player="policy",
        world="steps",
        episodes=2,
        mean_return=2.5,
        interval=(2.0, 3.0),
        mean_length=2.5,
    )
    policy = bundle_of_a_world(str(run)).card.files["policy.onnx"]
    WorldRecord(policy=policy, scores=[score]).write(run)
    found = read_world_record(run)
    assert found is not None
    assert found.scores[0].mean_return == 2.5
    assert read_record(run) is None
    WorldRecord(policy="another", scores=[score]).write(run)
    assert read_world_record(run) is None
