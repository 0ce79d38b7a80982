"""`BatchEnv` through Gymnasium's interface."""

from __future__ import annotations

import numpy as np
import pytest

import envs
from tests.envs.test_compliance import Pit


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("battlesnake", {"num_games": 4, "max_turns": 5}),
        ("procgen/bossfight", {"num_games": 4, "distribution_mode": "easy", "action_repeat": 4}),
    ],
)
def test_a_step_keeps_nothing_of_the_episodes_that_it_told_of(name, options):
    world = envs.make(name, **options)
    told = 0
    world.reset(seed=0)
    for _ in range(300):
        *_, info = world.step(np.ones(world.num_envs, np.int64))
        told += np.sum(info.get("_final_info", False))
        if told:
            break
    assert told
    assert not any(map(len, world.drain_episodes().values()))
    world.close()


def test_a_world_without_final_info_of_its_own_tells_its_columns_there():
    world = Pit()
    steps = np.zeros(6, np.int32)
    world.reset(seed=0)
    is_seen = np.zeros(6, bool)
    while not is_seen.all():
        *_, rewards, _, _, info = world.step(np.ones(6, np.int64))
        steps += 1
        ended = info.get("_final_info", np.zeros(6, bool))
        if ended.any():
            told = info["final_info"]
            assert told["_return"].tolist() == told["_length"].tolist() == ended.tolist()
            assert told["return"].tolist() == rewards.tolist()
            first = ended & ~is_seen
            assert told["length"][first].tolist() == steps[first].tolist()
            assert not told["length"][~ended].any()
        is_seen |= ended
    assert not len(world.drain_episodes()["row"])
