"""Reward configurations, and the closed form that potential-based shaping promises."""

from __future__ import annotations

import numpy as np
import pytest

from envs.battlesnake import BattlesnakeVectorEnv, EgocentricPlanes, PotentialShaping, Rewards
from envs.battlesnake.rewards import EVENTS, PRESETS
from envs.common.errors import ConfigError, UnknownNameError


def test_options_name_events_and_presets():
    assert Rewards.from_options("win") == Rewards(won=1.0, died=-1.0)
    assert Rewards.from_options({"ate_food": 0.5}).options() == {"ate_food": 0.5}
    assert Rewards(died=-2.0).weights()[EVENTS.index("died")] == -2.0
    for preset in PRESETS.values():
        assert Rewards.from_options(preset.options()) == preset
    with pytest.raises(UnknownNameError, match="Did you mean 'win'"):
        Rewards.from_options("winn")
    with pytest.raises(ConfigError, match=r"rewards\.won is 'much'"):
        Rewards.from_options({"won": "much"})


@pytest.mark.parametrize(
    ("moves", "paid"),
    [
        (["up", "up"], {"hit_wall": 1, "died": 1}),
        (["down"], {"forbidden_move": 1, "hit_self": 1, "died": 1}),
        (["left"], {"ate_food": 1, "another_turn": 1}),
        (["right"], {"another_turn": 1}),
    ],
    ids=str,
)
def test_a_turn_is_paid_by_what_happened_in_it(moves, paid):
    """A lone snake heading up, one cell below the edge, with food on its left."""
    seen = []

    def keep(events):
        seen.append(events[0].copy())
        return np.zeros(len(events), np.float32)

    env = BattlesnakeVectorEnv(
        num_games=1, width=7, height=7, num_snakes=1, observation=EgocentricPlanes(view="board"), rewards=keep
    )
    env.restart(0)
    env.state.clear(0)
    env.state.place_snake(0, 0, [(3, 5), (3, 4), (3, 3)])
    env.state.arrays.food[0, env.state.cell(2, 5)] += 1
    env.state.arrays.num_food[0] += 1
    for move in moves:
        env.advance(np.array([("up", "down", "left", "right").index(move)]))
    assert {name: int(count) for name, count in zip(EVENTS, seen[-1], strict=True) if count} == paid


def test_shaping_adds_up_to_minus_the_first_potential():
    """Over an episode the discounted bonuses telescope to -Phi(first state), whatever happens between (Ng et al., 1999)."""
    gamma, rng = 0.9, np.random.default_rng(0)
    potentials = rng.normal(size=(20, 3))
    shaping = PotentialShaping(gamma)
    shaping.start(potentials[0])
    total = np.zeros(3)
    for step in range(1, 20):
        total += gamma ** (step - 1) * shaping.shape(potentials[step], np.full(3, step == 19))
    np.testing.assert_allclose(total, -potentials[0], atol=1e-12)


def test_shaping_refuses_what_can_not_be():
    with pytest.raises(ConfigError, match="gamma is 2"):
        PotentialShaping(2)
    with pytest.raises(ConfigError, match="start"):
        PotentialShaping(0.9).shape(np.zeros(1), np.zeros(1, bool))
