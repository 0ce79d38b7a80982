"""Evaluation on levels: which they are, who is measured, and that the figures are those of the episodes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import envs
import procsnake
from agents import bundle, networks
from agents.procgen_evaluation import chosen_levels, evaluate, play, table
from envs.errors import ConfigError

OPTIONS = {"num_games": 64, "distribution_mode": "easy", "levels": "train:200"}


@pytest.fixture(scope="module")
def to_the_right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy for starpilot whose likeliest action is always 7, right."""
    torch.manual_seed(0)
    network = networks.build("impala", (64, 64, 3), 15, depths=[4], blocks=0, pooling="average", hidden=8)
    with torch.no_grad():
        network.heads.actor.bias[7] = 50.0
    name = "procgen/starpilot"
    card = {
        "environment": {"name": name, "options": OPTIONS},
        "observation": {"type": name, "version": 1},
        "observation_shape": [64, 64, 3],
        "action": {"type": name, "version": 1, "num_actions": 15},
        "network": {"name": "impala", "options": {"depths": [4], "blocks": 0, "pooling": "average", "hidden": 8}},
    }
    return bundle.export(tmp_path_factory.mktemp("run") / "bundle", network=network, card=card)


@pytest.mark.parametrize(
    ("levels", "trained", "expected"),
    [
        ("train", "train:200", "train:200"),
        ("test", "train:200", "test:200"),
        ("test", "50:100", "test:150"),
        ("all", "train:200", "all"),
        ("300:10", "train:200", "300:10"),
    ],
)
def test_train_and_test_are_those_of_the_run(levels: str, trained: str, expected: str) -> None:
    assert chosen_levels(levels, trained) == expected


@pytest.mark.parametrize(("levels", "trained"), [("test", "all"), ("100:300", "train:200")])
def test_trained_levels_cannot_test(levels: str, trained: str) -> None:
    with pytest.raises(ConfigError, match=r"overlap|there are 0"):
        chosen_levels(levels, trained)


def test_each_row_plays_as_many_episodes_and_all_returns_are_theirs() -> None:
    world = envs.make("procgen/bossfight", num_games=3, distribution_mode="easy", levels="train:5")
    returns, lengths = play(world, lambda seen: np.full(len(seen), 4), 7, seed=0)
    assert len(returns) == len(lengths) == 9
    again = play(world, lambda seen: np.full(len(seen), 4), 7, seed=0)
    np.testing.assert_array_equal(returns, again[0])
    np.testing.assert_array_equal(lengths, again[1])
    world.close()


def test_the_policy_is_measured_beside_the_random_agent(to_the_right: Path) -> None:
    policy, random = evaluate(str(to_the_right), levels="train", episodes=4)
    assert (policy.player, random.player) == ("policy", "random")
    world = envs.make("procgen/starpilot", **{**OPTIONS, "num_games": 4})
    returns, _ = play(world, lambda seen: np.full(len(seen), 7), 4, seed=0)
    assert policy.mean_return == pytest.approx(returns.mean())
    assert policy.interval[0] <= policy.mean_return <= policy.interval[1]
    assert policy.normalised == pytest.approx((returns.mean() - 2.5) / 61.5)
    assert "random" in table([policy, random])
    world.close()


def test_the_command_line_prints_the_scores(to_the_right: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert procsnake.main(["evaluate", str(to_the_right.parent), "--levels", "test", "--episodes", "2", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert [score["levels"] for score in scores] == ["test:200"] * 2
