"""Every world of `train` keeps the contract that `envs.compliance` tries, and tells its layers what
it is told.
"""

from __future__ import annotations

import numpy as np
import pytest

import tests.train.small_worlds  # noqa: F401
from envs.compliance import check_world
from tests.train.worlds.test_self_play import Network
from train.worlds.build import make_world
from train.worlds.state import carry_on, progress_of, remember

SNAKES = {
    "num_games": 4,
    "width": 7,
    "height": 7,
    "num_snakes": 2,
    "max_turns": 40,
    "observation": {"radius": 3, "rotate": True},
}
SMALL = {"name": "battlesnake", "options": SNAKES}
LARGE = {"name": "battlesnake", "options": {**SNAKES, "width": 9, "height": 9}}
POOL = {"past_every": 1, "share": 1.0}
STAGES = [{**SMALL, "until": 10_000}, LARGE]
"""Where the stage changes, episodes are cut off that `drain_episodes` leaves out; nothing here gets
there.
"""
WORLDS = {
    "self-play": {"name": "battlesnake", **SNAKES, "self_play": POOL},
    "mixture": {"name": "mixture", "worlds": [SMALL, LARGE]},
    "curriculum": {"name": "curriculum", "stages": STAGES},
    "mixture of curricula": {
        "name": "mixture",
        "worlds": [{"name": "curriculum", "options": {"stages": STAGES}}],
    },
    "augmented": {
        "name": "procgen/coinrun",
        "num_games": 2,
        "augment": ["translate", "color-jitter"],
    },
    "curious": {"name": "procgen/coinrun", "num_games": 2, "rnd": {"coef": 0.1}},
    "small": {"name": "symmetric-identity", "num_games": 3},
    "masked": {"name": "masked-bandit", "num_games": 3},
}


@pytest.mark.parametrize("kind", WORLDS)
def test_it_complies(kind):
    check_world(lambda: make_world(WORLDS[kind]), num_steps=25, network=Network(1))


def test_pools_at_any_depth_get_to_know_the_policy_and_go_on_with_it():
    curriculum = {"name": "curriculum", "options": {"stages": STAGES, "self_play": POOL}}
    first, later = (
        make_world({"name": "mixture", "worlds": [curriculum, curriculum]}) for _ in range(2)
    )
    remember(first, Network(2))
    assert [world.worlds[0].pool.past[0].player.bias.argmax() for world in first.worlds] == [2, 2]
    carry_on(later, progress_of(first), Network(0))
    assert [world.worlds[0].pool.past[0].player.bias.argmax() for world in later.worlds] == [2, 2]


def test_a_mixture_can_be_shown_in_the_views_of_its_worlds():
    views = make_world(WORLDS["mixture"]).views
    assert views is not None
    np.testing.assert_array_equal(views.actions, [[0, 1, 2], [2, 1, 0]])
