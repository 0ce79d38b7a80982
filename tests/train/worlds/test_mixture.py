from __future__ import annotations

import numpy as np
import pytest

import envs
import tests.train.small_worlds  # noqa: F401
from envs.common.errors import ConfigError
from tests.train.experiments import toy
from train.config import Experiment
from train.run import train
from train.runs.folder import RunFolder

BOARDS = [
    {
        "name": "battlesnake",
        "options": {"num_games": 5, "width": side, "height": side, "observation": {"radius": 3}},
    }
    for side in (7, 11)
]


def test_each_world_goes_its_own_way():
    """The rows of each are those of the world alone with the same seed and actions."""
    mixture = envs.make("mixture", worlds=BOARDS)
    mixture.restart(3)
    seeds = [int(np.random.SeedSequence([3, k]).generate_state(1)[0]) for k in (0, 1)]
    alone = [envs.make(board["name"], **board["options"]) for board in BOARDS]
    for world, seed in zip(alone, seeds, strict=True):
        world.restart(seed)
    rng = np.random.default_rng(0)
    lengths = {"battlesnake": [], "battlesnake_2": []}
    for _ in range(60):
        for name in ("observations", "valid", "action_mask", "rewards", "terminated", "truncated"):
            np.testing.assert_array_equal(
                getattr(mixture, name), np.concatenate([getattr(world, name) for world in alone])
            )
        ended = mixture.terminated | mixture.truncated
        finals = np.concatenate([world.final_observations for world in alone])
        np.testing.assert_array_equal(mixture.final_observations[ended], finals[ended])
        actions = (rng.random(mixture.action_mask.shape) * mixture.action_mask).argmax(axis=1)
        mixture.advance(actions)
        for world, part in zip(alone, np.split(actions, [20]), strict=True):
            world.advance(part)
        columns = mixture.drain_episodes()
        for label, seen in lengths.items():
            seen.extend(columns["length"][columns[f"world_{label}"]])
        assert ((columns["row"] < 20) == columns["world_battlesnake"]).all()
        assert (
            columns["length_battlesnake"] + columns["length_battlesnake_2"] == columns["length"]
        ).all()
    expected = [world.drain_episodes()["length"].tolist() for world in alone]
    assert [list(map(int, seen)) for seen in lengths.values()] == expected
    assert all(expected)


def test_steps_of_games_are_those_of_all_worlds():
    coinrun = {"name": "procgen/coinrun", "options": {"num_games": 2, "action_repeat": 4}}
    mixture = envs.make(
        "mixture", worlds=[coinrun, {"name": "procgen/coinrun", "options": {"num_games": 3}}]
    )
    assert mixture.env_steps_per_advance == 2 * 4 + 3
    mixture.restart(0)
    mixture.advance(np.zeros(5, np.int64))
    assert mixture.env_steps_per_advance == 2 * 4 + 3
    mixture.close()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"name": "corridor"}, "one policy can't play both"),
        (
            {"name": "battlesnake", "options": {"observation": {"radius": 4}}},
            "one policy can't play both",
        ),
        (
            {"name": "battlesnake", "options": {"num_snakes": 2, "observation": {"radius": 3}}},
            "one policy can't play both",
        ),
        ({}, "must be a list like"),
    ],
)
def test_worlds_that_do_not_fit_are_refused(other, message):
    with pytest.raises(ConfigError, match=message):
        envs.make("mixture", worlds=[BOARDS[0], other])


def test_one_policy_learns_in_two_worlds_whose_returns_are_told_apart(one_ray, tmp_path):
    """The second corridor is cut after three steps, so nobody arrives there."""
    worlds = [
        {"name": "corridor", "options": {"num_games": 32, "max_turns": turns}}
        for turns in (1000, 3)
    ]
    data = toy("mixture", steps=40_000, gamma=0.95).to_dict()
    data["env"] = {
        "name": "mixture",
        "imports": ["tests.train.small_worlds"],
        "options": {"worlds": worlds},
    }
    row = RunFolder(train(Experiment.from_dict(data), runs_dir=tmp_path).path).curve()[-1]
    assert float(row["episode_return_mean_corridor"]) >= 0.9
    assert float(row["episode_len_mean_corridor"]) == pytest.approx(10, abs=1)
    assert float(row["episode_return_mean_corridor_2"]) == 0.0
    assert float(row["episode_len_mean_corridor_2"]) == pytest.approx(3, abs=0.3)
