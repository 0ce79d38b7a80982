"""Every field of the installed RLlib's `AlgorithmConfig` does what it says, or is refused by
name.
"""

from __future__ import annotations

import re

import pytest
from ray import tune
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from envs.common.errors import ConfigError
from tests.train.rllib.fields_shown import shown_fields, shows
from tests.train.rllib.small_runs import small
from train.apex import APEXConfig
from train.appo import APPOConfig
from train.dqn import DQNConfig
from train.ppo import PPOConfig, PPORunner
from train.rllib.rllib_fields import INSTEAD, REFUSED, RELICS, SAME_MEANING, SET_BY_RLLIB

FIELDS = set(vars(AlgorithmConfig()))


def test_every_field_of_the_installed_ray_is_accounted_for():
    """What isn't refused is honoured, and then a test shows it."""
    shown = shown_fields()
    refused = {*REFUSED, *RELICS} - set(SAME_MEANING)
    assert shown == FIELDS - refused - SET_BY_RLLIB
    assert {*REFUSED, *RELICS, *SET_BY_RLLIB} <= FIELDS
    assert set(INSTEAD) <= RELICS
    assert len(REFUSED) <= len(FIELDS) / 4


@pytest.mark.parametrize("kind", [PPOConfig, APPOConfig, DQNConfig])
def test_what_is_not_honoured_is_refused_by_name(kind):
    for field in sorted({*REFUSED, *RELICS} - set(SAME_MEANING)):
        config = small(kind)
        before = getattr(config, field)
        config.__dict__[field] = (not before) if isinstance(before, bool) else {"changed": 1}
        if field == "simple_optimizer":
            config.__dict__[field] = True
        with pytest.raises(ConfigError, match=f"setting {field.removeprefix('_')} has no effect"):
            config.validate()


@shows("_validate_config")
def test_nothing_is_refused_where_no_checks_are_asked_for():
    config = small().env_runners(batch_mode="complete_episodes")
    config.experimental(_validate_config=False).validate()
    assert config.env_runner_cls is PPORunner


def test_dqn_refuses_what_only_minibatches_have():
    for field, value in {
        "num_epochs": 3,
        "minibatch_size": 3,
        "shuffle_batch_per_epoch": False,
    }.items():
        with pytest.raises(ConfigError, match=field):
            small(DQNConfig).training(**{field: value}).validate()


@pytest.mark.parametrize(
    ("field", "use"),
    [
        ("exploration_config", "training(epsilon=…) with DQN"),
        ("model", "rl_module(model_config="),
        ("num_gpus", "learners(num_gpus_per_learner=…)"),
        ("observation_filter", "there are no connectors; change what the world shows"),
        ("clip_rewards", "leave it out"),
    ],
)
def test_what_rllibs_old_stack_read_is_an_error_that_says_what_to_use(field, use):
    config = small()
    config.__dict__[field] = {"changed": 1}
    with pytest.raises(ConfigError, match=f"new API stack doesn't read it; .*{re.escape(use)}"):
        config.validate()


def test_others_refuse_what_only_asynchronous_algorithms_read():
    for field, reason in {
        "env_runner_state_server_max_concurrency": "only appo and apex have weight servers",
        "max_requests_in_flight_per_env_runner": "it waits for all env runners",
    }.items():
        small(APPOConfig).env_runners(num_env_runners=1, **{field: 7}).validate()
        with pytest.raises(ConfigError, match=f"{field} has no effect on ppo: {reason}"):
            small().env_runners(num_env_runners=1, **{field: 7}).validate()
    parallel = small().evaluation(
        evaluation_duration="auto",
        evaluation_interval=1,
        evaluation_num_env_runners=1,
        evaluation_parallel_to_training=True,
    )
    parallel.env_runners(max_requests_in_flight_per_env_runner=7).validate()


def test_what_an_algorithm_needs_is_asked_for_when_it_is_built():
    with pytest.raises(ConfigError, match="num_env_runners=1"):
        small(APEXConfig).validate()
    with pytest.raises(ConfigError, match="lr: a space to search"):
        small().training(lr=tune.grid_search([0.1])).validate()
