"""`BatchEnv` through Gymnasium's interface."""

from __future__ import annotations

import numpy as np
import pytest

import envs


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("battlesnake", {"num_games": 4, "max_turns": 5}),
        ("procgen/bossfight", {"num_games": 4, "distribution_mode": "easy", "action_repeat": 4}),
    ],
)
def test_a_step_keeps_nothing_of_the_episodes_that_it_told_of(name, options):
    world, told = envs.make(name, **options), 0
    world.reset(seed=0)
    for _ in range(300):
        *_, info = world.step(np.ones(world.num_envs, np.int64))
        told += np.sum(info.get("_final_info", False))
        if told:
            break
    assert told
    assert not any(map(len, world.drain_episodes().values()))
    world.close()
