"""Reward configurations, and the closed form that potential-based shaping promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from envs.battlesnake import BattlesnakeVectorEnv, EgocentricPlanes, PotentialShaping, Rewards
from envs.battlesnake.rewards import EVENTS, PRESETS, choose_rewards
from envs.common.errors import ConfigError, UnknownNameError


def test_options_name_events_and_presets():
    assert Rewards.from_options("win") == Rewards(won=1.0, died=-1.0)
    assert Rewards.from_options({"ate_food": 0.5}).options() == {"ate_food": 0.5}
    assert Rewards(died=-2.0).weights()[EVENTS.index("died")] == -2.0
    for preset in PRESETS.values():
        assert Rewards.from_options(preset.options()) == preset
    with pytest.raises(UnknownNameError, match="Did you mean 'win'"):
        Rewards.from_options("winn")
    for given in (None, [1], 3):
        with pytest.raises(
            ConfigError,
            match=r"it must be a preset's name .*, a dict of weights by event, or a function",
        ):
            choose_rewards(given)


@pytest.mark.parametrize(
    "weight", ["much", True, None, math.nan, math.inf, -math.inf, 1e39, -(10**40)], ids=repr
)
def test_a_weight_that_no_trainer_can_count_with_is_refused(weight):
    with pytest.raises(
        ConfigError, match=r"rewards\.won is .*; it must be a number from -1e\+09 to 1e\+09"
    ):
        Rewards.from_options({"won": weight})
    with pytest.raises(ConfigError, match=r"rewards\.won is"):
        Rewards(won=weight)


def drawn(bodies, *, food=()):
    """Two games, of which the second is drawn by hand, and a list that gets the events of its
    snakes turn by turn.
    """
    seen = []

    def keep(events):
        seen.append(
            [
                {n: int(k) for n, k in zip(EVENTS, row, strict=True) if k}
                for row in events[len(bodies) :]
            ]
        )
        return np.zeros(len(events), np.float32)

    env = BattlesnakeVectorEnv(
        num_games=2,
        width=7,
        height=7,
        num_snakes=len(bodies),
        observation=EgocentricPlanes(view="board"),
        rewards=keep,
    )
    env.restart(0)
    env.state.clear(1)
    for slot, body in enumerate(bodies):
        env.state.place_snake(1, slot, body)
    for x, y in food:
        env.state.arrays.food[1, env.state.cell(x, y)] += 1
        env.state.arrays.num_food[1] += 1
    return env, seen


def move(env, names):
    """Move the drawn snakes; those of the other game go up."""
    env.advance(
        np.array([0] * len(names) + [("up", "down", "left", "right").index(name) for name in names])
    )


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
    env, seen = drawn([[(3, 5), (3, 4), (3, 3)]], food=[(2, 5)])
    for name in moves:
        move(env, [name])
    assert seen[-1] == [paid]


LIVES = {"another_turn": 1}
IS_EATEN = {"died": 1, "was_eaten": 1}
HITS_A_BODY = {"died": 1, "hit_other_snake": 1}
THREE_RIGHT = [(2, 3), (1, 3), (0, 3)]
FOUR_RIGHT = [(2, 3), (1, 3), (0, 3), (0, 2)]
FOUR_LEFT = [(4, 3), (5, 3), (6, 3), (6, 2)]
FIVE_UP = [(3, 2), (3, 1), (3, 0), (2, 0), (1, 0)]
BYSTANDER = [(0, 5), (0, 6), (1, 6)]
ACROSS = [(3, 4), (3, 3), (3, 2), (3, 1)]


@pytest.mark.parametrize(
    ("bodies", "moves", "paid"),
    [
        pytest.param(
            [THREE_RIGHT, BYSTANDER, FOUR_LEFT],
            ["right", "right", "left"],
            [IS_EATEN, LIVES, {**LIVES, "ate_another_snake": 1}],
            id="the longer head eats the shorter",
        ),
        pytest.param(
            [FIVE_UP, FOUR_RIGHT, FOUR_LEFT],
            ["up", "right", "left"],
            [{**LIVES, "won": 1, "ate_another_snake": 2}, IS_EATEN, IS_EATEN],
            id="the longest head eats two",
        ),
        pytest.param(
            [BYSTANDER, FOUR_RIGHT, FOUR_LEFT],
            ["right", "right", "left"],
            [{**LIVES, "won": 1}, IS_EATEN, IS_EATEN],
            id="equal heads both die and nobody ate",
        ),
        pytest.param(
            [FIVE_UP[:3], FOUR_RIGHT, FOUR_LEFT],
            ["up", "right", "left"],
            [IS_EATEN, IS_EATEN, IS_EATEN],
            id="the longer heads are equal and none lives to have eaten the shorter",
        ),
        pytest.param(
            [THREE_RIGHT, BYSTANDER, ACROSS],
            ["right", "right", "up"],
            [HITS_A_BODY, LIVES, {**LIVES, "other_snake_hit_body": 1}],
            id="a head meets the body of one who lives",
        ),
        pytest.param(
            [THREE_RIGHT, [(0, 5), (1, 5), (2, 5), (3, 5), (4, 5)], ACROSS],
            ["right", "up", "up"],
            [
                HITS_A_BODY,
                {**LIVES, "won": 1, "other_snake_hit_body": 1},
                {**HITS_A_BODY, "other_snake_hit_body": 1},
            ],
            id="a head meets the body of one who dies in the same turn",
        ),
    ],
)
def test_a_meeting_is_paid_to_the_snakes_that_had_a_part_in_it(bodies, moves, paid):
    env, seen = drawn(bodies)
    move(env, moves)
    assert seen[-1] == paid


def test_shaping_adds_up_to_minus_the_first_potential():
    """Over an episode the discounted bonuses telescope to -Phi(first state), whatever happens
    between (Ng et al., 1999).
    """
    gamma = 0.9
    rng = np.random.default_rng(0)
    potentials = rng.normal(size=(20, 3))
    shaping = PotentialShaping(gamma)
    shaping.start(potentials[0])
    total = np.zeros(3)
    never = np.zeros(3, bool)
    for step in range(1, 20):
        total += gamma ** (step - 1) * shaping.shape(
            potentials[step], np.full(3, step == 19), never, np.zeros(3)
        )
    np.testing.assert_allclose(total, -potentials[0], atol=1e-12)


def test_shaping_leaves_the_worth_of_being_cut_off_as_it_was():
    """A trainer adds gamma * V(final observation), and shaping has made each V(s) smaller by Phi(s)
    (Ng et al., 1999).
    """
    gamma = 0.9
    values = np.array([2.0, 2.0, 2.0])
    first = np.array([0.5, 0.5, 0.5])
    final = np.array([0.0, 1.0, 5.0])
    shaping = PotentialShaping(gamma)
    shaping.start(first)
    bonus = shaping.shape(np.full(3, 7.0), np.zeros(3, bool), np.ones(3, bool), final)
    np.testing.assert_allclose(bonus + gamma * (values - final), gamma * values - first)
    # The next episode began with a potential of 7. What terminates at the turn limit isn't gone on
    # from.
    both = np.ones(3, bool)
    np.testing.assert_allclose(shaping.shape(first, both, both, final), np.full(3, -7.0))


def test_shaping_refuses_what_can_not_be():
    with pytest.raises(ConfigError, match="gamma is 2"):
        PotentialShaping(2)
    with pytest.raises(ConfigError, match="start"):
        PotentialShaping(0.9).shape(np.zeros(1), np.zeros(1, bool), np.zeros(1, bool), np.zeros(1))
