"""The PettingZoo environment: what PettingZoo's own tests ask, and who leaves when."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from envs.battlesnake import BattlesnakeVectorEnv, EgocentricPlanes
from envs.battlesnake.observing.starter_pack import KINDS
from envs.battlesnake.parallel_env import parallel_env
from envs.battlesnake.settings import RULESETS
from envs.common.errors import InvalidActionError

with (
    warnings.catch_warnings()
):  # where pygame is installed, PettingZoo's tests import a world that PettingZoo deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test, parallel_seed_test

SMALL = {"width": 7, "height": 7, "num_snakes": 3}


@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize(
    "observation", [EgocentricPlanes(rotate=True), EgocentricPlanes(), *KINDS], ids=str
)
def test_pettingzoo_tests_find_nothing(ruleset, observation):
    options = {**SMALL, "ruleset": ruleset, "observation": observation}
    parallel_api_test(parallel_env(**options), num_cycles=60)
    parallel_seed_test(lambda: parallel_env(**options), num_cycles=20)


def _play(env, seed, rng):
    """Steps of one game in which each agent takes a random unmasked action: (acting agents,
    actions, outcome).
    """
    _, infos = env.reset(seed=seed)
    while env.agents:
        acting = list(env.agents)
        actions = {
            agent: int(rng.choice(np.flatnonzero(infos[agent]["action_mask"]))) for agent in acting
        }
        outcome = env.step(actions)
        infos = outcome[4]
        yield acting, actions, outcome


def test_plays_the_same_game_as_the_vector_environment():
    env = parallel_env(**SMALL)
    batch = BattlesnakeVectorEnv(num_games=1, **SMALL)
    rng = np.random.default_rng(0)
    compared = 0
    for seed in range(5):
        batch.restart(seed)
        for acting, actions, (observations, rewards, terminated, truncated, _) in _play(
            env, seed, rng
        ):
            batch.advance(np.array([actions.get(agent, 0) for agent in env.possible_agents]))
            ended = batch.terminated | batch.truncated
            for row, agent in enumerate(env.possible_agents):
                if agent not in acting:
                    continue
                expected = batch.final_observations[row] if ended[row] else batch.observations[row]
                assert np.array_equal(observations[agent], expected)
                flags = (rewards[agent], terminated[agent], truncated[agent])
                assert flags == (batch.rewards[row], batch.terminated[row], batch.truncated[row])
                compared += 1
    assert compared > 50


def test_the_dead_leave_and_the_game_ends_for_all():
    env = parallel_env(**SMALL)
    for acting, _, (_, _, terminated, _, infos) in _play(env, 3, np.random.default_rng(1)):
        assert set(terminated) == set(infos) == set(acting)
        assert env.agents == [agent for agent in acting if not terminated[agent]]
    assert all(terminated.values())


def test_masked_actions_are_certain_death():
    env = parallel_env(**SMALL)
    rng = np.random.default_rng(2)
    tried = 0
    for seed in range(30):
        _, infos = env.reset(seed=seed)
        for _ in range(3):
            if len(env.agents) < 3:
                break
            victim = next((a for a in env.agents if not infos[a]["action_mask"].all()), None)
            actions = {
                a: int(rng.choice(np.flatnonzero(infos[a]["action_mask"]))) for a in env.agents
            }
            if victim is not None:
                actions[victim] = int(np.flatnonzero(infos[victim]["action_mask"] == 0)[0])
            _, _, terminated, _, infos = env.step(actions)
            if victim is not None:
                assert terminated[victim]
                tried += 1
    assert tried > 5


def test_rendering():
    env = parallel_env(**SMALL, render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (8 * 32, 8 * 32, 3)


@pytest.mark.parametrize(
    ("options", "flags"), [({}, 2), ({"max_turns": 2}, 3)], ids=["terminated", "truncated"]
)
def test_a_step_after_the_end_is_empty_until_the_next_reset(options, flags):
    env = parallel_env(**SMALL, **options)
    *_, (_, _, outcome) = _play(env, 3, np.random.default_rng(1))
    assert env.agents == []
    assert all(outcome[flags].values())
    # As PettingZoo's own worlds answer; its converters and SuperSuit's black_death rely on it.
    assert env.step({}) == ({}, {}, {}, {}, {})
    env.reset()
    assert len(env.step(dict.fromkeys(env.agents, 1))[0]) == 3


@pytest.mark.parametrize("actions", [{}, {"snake_0": 0, "snake_1": 0, "snake_2": 9}])
def test_bad_actions_are_refused(actions):
    env = parallel_env(**SMALL)
    with pytest.raises(InvalidActionError, match="reset"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(InvalidActionError, match=r"must be an integer in 0\.\.2"):
        env.step(actions)
