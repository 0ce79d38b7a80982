"""Changed pictures in training, the games' own when it is measured."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from agents.augment import augment
from envs.common.errors import ConfigError, UnknownNameError
from tests.envs.procgen.test_make import Counting
from train.config import Experiment
from train.runs.export import _card
from train.runs.sessions.evaluation import Evaluator
from train.worlds.augmentation import AugmentedWorld
from train.worlds.build import make_world, single_world, world_options

SPACE = Box(0, 255, (16, 16, 3), np.uint8)


def _world(names: list[str], seed: int = 0) -> tuple[AugmentedWorld, Counting]:
    inner = Counting(rows=3, space=SPACE)
    return AugmentedWorld(inner, names, seed=seed), inner


def test_each_row_sees_its_picture_changed_and_all_else_is_the_worlds() -> None:
    world, inner = _world(["translate"])
    world.restart(5)
    generator = torch.Generator().manual_seed(5)
    seen = augment(torch.from_numpy(inner.observations), ["translate"], generator).numpy()
    np.testing.assert_array_equal(world.observations, seen)
    changed = 0
    for step in range(1, 6):
        world.advance(np.array([1, 2, 3]))
        changed += int((world.observations != inner.observations).any())
        np.testing.assert_array_equal(world.rewards, [1, 2, 3])
        np.testing.assert_array_equal(world.terminated, inner.terminated)
        if step == 3:  # row 0 ends
            assert (world.final_observations[0] != inner.final_observations[0]).any()
            assert set(np.unique(world.final_observations[0])) == {
                0,
                *np.unique(inner.final_observations[0]),
            }
            np.testing.assert_array_equal(
                world.final_observations[1:], inner.final_observations[1:]
            )
    assert changed == 5


def test_the_seed_repeats_the_changes() -> None:
    worlds = [_world(["pad-crop", "cutout"])[0] for _ in range(2)]
    for world in worlds:
        world.restart(1)
        for _ in range(4):
            world.advance(np.zeros(3, int))
    np.testing.assert_array_equal(worlds[0].observations, worlds[1].observations)
    worlds[1].restart(2)
    worlds[0].restart(1)
    assert (worlds[0].observations != worlds[1].observations).any()


def test_evaluation_and_export_see_the_games_own_pictures() -> None:
    overrides = [
        "env.options.num_games=2",
        "env.options.rnd={coef: 0.1}",
        "env.options.augment=[translate]",
    ]
    small = ["network.options.depths=[4]", "network.options.hidden=8", "evaluation.games=2"]
    experiment = Experiment.load("procgen-ppo", [*overrides, *small])
    training = make_world(world_options(experiment))
    assert isinstance(training, AugmentedWorld)
    training.close()
    evaluator = Evaluator(experiment)
    assert not isinstance(evaluator._world, AugmentedWorld)
    assert evaluator._world.single_observation_space.shape == (64, 64, 3)
    evaluator._world.close()
    with closing(single_world(experiment)) as world:
        card = _card(experiment, world)
    assert "augment" not in card["environment"]["options"]
    assert "rnd" not in card["environment"]["options"]
    assert card["config"]["env"]["options"]["augment"] == ["translate"]


@pytest.mark.parametrize(
    ("augment_option", "error", "said"),
    [
        (["translat"], UnknownNameError, "translate"),
        ([], ConfigError, "list of names"),
        ("flip", ConfigError, "list of names"),
    ],
)
def test_bad_augmentations_are_refused(
    augment_option: object, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        make_world({"name": "procgen/maze", "num_games": 1, "augment": augment_option})


def test_only_pictures_can_be_changed() -> None:
    with pytest.raises(ConfigError, match="pictures"):
        AugmentedWorld(Counting(space=Box(0, 1, (4,), np.float32)), ["flip"])
