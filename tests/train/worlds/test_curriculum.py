from __future__ import annotations

import math

import numpy as np
import pytest

from envs.common.errors import ConfigError
from envs.common.strangers.bounded import parse_yaml
from tests.train.experiments import toy, toy_q
from train.appo import APPOConfig, APPORunner
from train.config import Experiment
from train.dqn import DQNConfig, QRunner
from train.ppo import PPOConfig, PPORunner
from train.worlds.build import make_world
from train.worlds.state import carry_on, progress_of

WINDOW = {"view": "window", "radius": 3, "rotate": True}
SMALL = {
    "name": "battlesnake",
    "options": {"width": 5, "height": 5, "num_snakes": 2, "observation": WINDOW},
}
LARGE = {
    "name": "battlesnake",
    "options": {"width": 11, "height": 11, "num_snakes": 4, "observation": WINDOW},
}


def curriculum(*stages, num_games=4):
    return make_world({"name": "curriculum", "stages": list(stages), "num_games": num_games})


def step(env):
    env.advance(env.action_mask.argmax(1))


def test_the_stages_follow_each_other_by_decisions():
    env = curriculum({**SMALL, "until": 100}, LARGE)
    env.restart(3)
    assert (env.num_envs, env.valid.sum()) == (16, 8)
    taken = 0
    while env.stage == 0:
        taken += env.valid.sum()
        before = env.valid.copy()
        step(env)
    assert taken >= 100 > taken - before.sum()
    assert env.valid.all()
    # All who lived were cut off, saw what they saw last, and are told so.
    ended = env.terminated | env.truncated
    assert env.truncated.any()
    assert (ended <= before).all()
    assert env.final_observations[env.truncated].any(axis=(1, 2, 3)).all()
    for _ in range(300):
        step(env)
    columns = env.drain_episodes()
    assert {0, 1} == set(columns["stage"].tolist())
    assert set(columns) == set(env.drain_episodes())


def test_a_stage_is_the_world_itself():
    env = curriculum({**SMALL, "until": 10_000}, LARGE)
    alone = make_world({"name": "battlesnake", "num_games": 4, **SMALL["options"]})
    env.restart(3)
    alone.restart(int(np.random.SeedSequence([3, 0]).generate_state(1)[0]))
    for _ in range(60):
        for name in ("observations", "valid", "rewards", "terminated", "action_mask"):
            np.testing.assert_array_equal(
                getattr(env, name)[:8], getattr(alone, name), err_msg=name
            )
        assert not env.valid[8:].any()
        alone.advance(alone.action_mask.argmax(1))
        step(env)


def test_a_shrinking_world_leaves_no_ghosts():
    env = curriculum({**LARGE, "until": 20}, SMALL)
    env.restart(0)
    for _ in range(6):
        step(env)
    assert env.stage == 1
    assert not env.valid[8:].any()
    step(env)
    assert not (env.terminated | env.truncated)[8:].any()
    assert not env.rewards[8:].any()


@pytest.mark.parametrize(
    "stages",
    [
        [],
        [SMALL, LARGE],
        [{**SMALL, "until": 5}],
        *([{**SMALL, "until": limit}, LARGE] for limit in (math.inf, math.nan, True, "soon", [5])),
        [{**SMALL, "until": 9}, {**LARGE, "until": 5}, LARGE],
        [
            {**SMALL, "until": 9},
            {**LARGE, "options": {**LARGE["options"], "observation": {**WINDOW, "rotate": False}}},
        ],
    ],
)
def test_stages_that_do_not_fit_are_refused(stages):
    with pytest.raises(ConfigError, match="stages"):
        curriculum(*stages)


@pytest.mark.parametrize("limit", ["1e3", "1.0e+3", "1000"])
def test_a_stage_ends_by_a_number_however_yaml_reads_it(limit):
    assert curriculum({**SMALL, "until": parse_yaml(limit)}, LARGE).until == [1000]


def test_a_curriculum_goes_on_where_it_was():
    env, other = (curriculum({**SMALL, "until": 60}, LARGE) for _ in range(2))
    env.restart(0)
    while env.stage == 0:
        step(env)
    carry_on(other, progress_of(env), None)
    other.restart(5)
    assert (other.stage, other.decisions) == (1, env.decisions)
    alone = make_world({"name": "battlesnake", "num_games": 4, **LARGE["options"]})
    alone.restart(int(np.random.SeedSequence([5, 1]).generate_state(1)[0]))
    np.testing.assert_array_equal(other.observations, alone.observations)


def test_all_stages_share_one_pool():
    league = {"opponents": ["flood"], "share": 1.0}
    env = make_world(
        {
            "name": "curriculum",
            "stages": [{**SMALL, "until": 60}, LARGE],
            "num_games": 4,
            "self_play": league,
        }
    )
    env.restart(0)
    assert env.valid[:8].reshape(4, 2).sum(1).tolist() == [1] * 4
    while env.stage == 0:
        step(env)
    beaten = env.worlds[0].pool.fixed[0].win_rate
    assert beaten != 0.5
    assert env.worlds[1].pool is env.worlds[0].pool
    assert env.valid.reshape(4, 4).sum(1).tolist() == [1] * 4
    assert "league_flood" in env.drain_episodes()


def in_identity(algorithm: str) -> Experiment:
    """Three games of one row each, and after 10 decisions five."""
    stages = [
        {"name": "identity", "until": 10, "options": {"num_games": 3}},
        {"name": "identity", "options": {"num_games": 5}},
    ]
    data = (
        toy("identity", algorithm=algorithm).to_dict()
        if algorithm != "dqn"
        else toy_q("identity").to_dict()
    )
    return Experiment.from_dict(
        {**data, "env": {**data["env"], "name": "curriculum", "options": {"stages": stages}}}
    )


@pytest.mark.parametrize(
    ("algorithm", "config", "kind"),
    [
        ("ppo", PPOConfig, PPORunner),
        ("appo", APPOConfig, APPORunner),
        ("dqn", DQNConfig, QRunner),
    ],
)
def test_steps_of_games_are_counted_by_the_stage_that_plays_them(one_ray, algorithm, config, kind):
    settings = config.from_experiment(in_identity(algorithm))
    settings.rollout_fragment_length = 16
    runner = kind(config=settings, worker_index=0)
    (experience,) = runner.sample()
    assert experience.env_steps() == 4 * 3 + 12 * 5
    runner.stop()


def test_snakes_of_a_game_take_its_steps_together():
    env = curriculum({**SMALL, "until": 20}, LARGE)
    assert env.env_steps_per_advance == 4
    env.restart(0)
    assert env.env_steps_per_advance == 4


def test_what_is_around_a_curriculum_counts_the_steps_of_the_running_stage():
    stages = [
        {"name": "identity", "until": 3, "options": {"num_games": 3}},
        {"name": "identity", "options": {"num_games": 5}},
    ]
    curriculum = {"name": "curriculum", "options": {"stages": stages}}
    env = make_world(
        {"name": "mixture", "worlds": [curriculum, curriculum], "augment": ["translate"]}
    )
    assert env.env_steps_per_advance == 2 * 3
    env.restart(0)
    env.advance(np.zeros(env.num_envs, np.int64))
    assert env.env_steps_per_advance == 2 * 5
