"""The bonus for novelty: falls on what repeats, stays on what is new, and is paid beside the
reward.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from torch import nn

from envs.common.errors import ConfigError
from tests.envs.procgen.test_make import Counting
from train.worlds.build import make_world
from train.worlds.rnd import CuriousWorld, NoveltyBonus
from train.worlds.state import carry_on, progress_of

SHAPE = (16, 16, 3)
SPACE = Box(0, 255, SHAPE, np.uint8)


def _pictures(seed: int, count: int = 64) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(count, *SHAPE)).astype(np.uint8)


def test_the_error_falls_on_repeated_states_and_not_on_new_ones() -> None:
    novelty = NoveltyBonus(SHAPE, learning_rate=1e-3, proportion=1.0)
    # Known and new differ as two places in a game do: by a picture, not by noise alone.
    known = _pictures(0)
    new = 255 - _pictures(0)
    novelty.take_in(np.concatenate([known, new]))
    before = novelty.errors(known).mean()
    # As within an env runner.
    with torch.inference_mode():
        for _ in range(150):
            novelty.learn(known)
    assert novelty.errors(known).mean() < 0.1 * before
    assert novelty.errors(new).mean() > 3 * novelty.errors(known).mean()


def test_the_target_never_moves_and_statistics_are_those_of_all_batches() -> None:
    novelty = NoveltyBonus(SHAPE)
    fixed = [p.clone() for p in novelty.target.parameters()]
    parts = [_pictures(1, 10), _pictures(2, 30), _pictures(3, 5)]
    for part in parts:
        novelty.take_in(part)
        novelty.learn(part)
    whole = np.concatenate(parts).astype(np.float64)
    np.testing.assert_allclose(novelty._mean.numpy(), whole.mean(0), rtol=1e-4)
    np.testing.assert_allclose((novelty._squares / novelty._count).numpy(), whole.var(0), rtol=1e-3)
    assert all((a == b).all() for a, b in zip(fixed, novelty.target.parameters(), strict=True))


def test_the_bonus_is_paid_beside_the_reward_and_limited() -> None:
    inner = Counting(space=SPACE)
    world = CuriousWorld(inner, coef=0.5, most=0.7)
    world.restart()
    for _ in range(5):
        world.advance(np.array([3, 8]))
        np.testing.assert_allclose(world.rewards, np.array([3, 8]) + 0.5 * world.bonus, rtol=1e-6)
        assert (world.bonus >= 0).all()
        assert (world.bonus <= 0.7 + 1e-6).all()
    assert inner.rewards.tolist() == [3, 8]


def test_the_bonus_is_the_error_over_the_deviation_of_all_discounted_returns_so_far() -> None:
    """With a predictor that doesn't learn, the errors after a step are those that it was paid
    for.
    """
    most = 2.0
    every = []
    world = CuriousWorld(Counting(space=SPACE), gamma=0.5, most=most, learning_rate=0.0)
    returns = np.zeros(2)
    limited = 0
    world.restart()
    for _ in range(12):
        world.advance(np.zeros(2, int))
        ended = world.terminated[:, None, None, None]
        errors = world.novelty.errors(np.where(ended, world.final_observations, world.observations))
        returns = 0.5 * returns + errors
        every.append(returns)
        scaled = errors / np.sqrt(np.var(every) + 1e-8)
        np.testing.assert_allclose(world.bonus, np.minimum(scaled, most), rtol=1e-4)
        limited += (scaled > most).sum()
    assert 0 < limited < 24


@pytest.mark.parametrize("episodic", [False, True])
def test_only_the_episodic_form_forgets_at_an_ending(episodic: bool) -> None:
    world = CuriousWorld(Counting(space=SPACE), gamma=0.5, episodic=episodic, learning_rate=0.0)
    expected = np.zeros(2)
    world.restart()
    for _ in range(4):
        world.advance(np.zeros(2, int))
        ended = world.terminated
        pictures = np.where(
            ended[:, None, None, None], world.final_observations, world.observations
        )
        expected = 0.5 * expected + world.novelty.errors(pictures)
        if episodic:
            expected[ended] = 0
        np.testing.assert_allclose(world._scaler._returns, expected, rtol=1e-4)


def test_worlds_come_curious_by_their_options() -> None:
    world = make_world(
        {"name": "procgen/maze", "num_games": 4, "distribution_mode": "easy", "rnd": {"coef": 0.1}}
    )
    world.restart(0)
    world.advance(np.full(4, 4))
    assert (world.rewards > 0).all()
    world.close()


def test_a_step_on_which_opponents_alone_act_changes_nothing() -> None:
    board = {"num_games": 1, "num_snakes": 3, "width": 7, "height": 7, "observation": {"radius": 6}}
    pool = {"opponents": ["flood"], "share": 1.0, "past_every": None}
    world = make_world({"name": "battlesnake", **board, "self_play": pool, "rnd": {"coef": 1.0}})
    world.restart(0)
    idle = 0
    while idle < 5:
        idle += not world.valid.any()
        world.advance(np.zeros(world.num_envs, np.int64))
    assert np.isfinite(world.rewards).all()
    assert world.novelty._mean.isfinite().all()


def test_what_is_known_of_novelty_goes_on_in_another_world() -> None:
    """Same bonus for the same pictures from then on, and the same learning; without it everything
    would be new again.
    """
    worlds = [CuriousWorld(Counting(space=SPACE), learning_rate=1e-3, seed=seed) for seed in (0, 1)]
    for world in worlds:
        world.restart()
    for _ in range(30):
        worlds[0].advance(np.array([3, 8]))
    carry_on(worlds[1], progress_of(worlds[0]), nn.Identity())
    pictures = worlds[0].observations
    for _ in range(3):
        errors = [world.novelty.errors(pictures) for world in worlds]
        np.testing.assert_array_equal(*errors)
        for world in worlds:
            world.novelty._generator.manual_seed(0)
            world.novelty.learn(pictures)
    assert worlds[0]._scaler.variance == worlds[1]._scaler.variance != 1


@pytest.mark.parametrize(
    "options", [{"coef": -1.0}, {"gamma": 1.0}, {"proportion": 0.0}, {"coeff": 1.0}]
)
def test_bad_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="rnd"):
        make_world({"name": "procgen/maze", "num_games": 1, "rnd": options})
