"""Our settings by RLlib's names and by ours."""

from __future__ import annotations

from typing import Any

import pytest
from ray.rllib.core import DEFAULT_MODULE_ID

from envs.common.errors import ConfigError, UnknownNameError
from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import small
from train.dqn import DQNConfig
from train.ppo import PPOConfig
from train.rllib.batched_config import BatchedConfig
from train.rllib.rllib_fields import SAME_MEANING
from train.settings import PPOSettings

# Settings of ours: (kind, RLlib's field, value, our setting, its value).
SETTINGS: dict[str, tuple[type[BatchedConfig], Any, Any]] = {
    "lr": (PPOConfig, 1e-9, 1e-9),
    "gamma": (PPOConfig, 0.5, 0.5),
    "grad_clip": (PPOConfig, None, 0.0),
    "num_epochs": (PPOConfig, 9, 9),
    "rollout_fragment_length": (PPOConfig, 7, 7),
    "train_batch_size": (DQNConfig, 7, 7),
    "learning_starts": (DQNConfig, 7, 7),
}


@pytest.mark.parametrize("field", SETTINGS)
def test_a_setting_is_the_same_by_both_names(field):
    kind, value, ours = SETTINGS[field]
    name = SAME_MEANING[field]
    config = small(kind)
    setattr(config, field, value)
    assert getattr(config.settings, name) == getattr(config, name) == ours
    again = kind()
    setattr(again, name, ours)
    assert getattr(again, field) == again.to_dict()[field] == value
    assert kind().update_from_dict(config.to_dict()).settings == config.settings


def test_training_takes_the_names_of_rllibs_own_ppo_and_refuses_others():
    config = PPOConfig().training(
        lambda_=0.5, clip_param=0.1, vf_loss_coeff=0.3, entropy_coeff=0.2, optimizer="muon"
    )
    expected = PPOSettings(
        gae_lambda=0.5, clip_coef=0.1, vf_coef=0.3, ent_coef=0.2, optimizer="muon"
    )
    assert config.settings == expected
    assert (
        DQNConfig()
        .training(learning_starts=9, num_atoms=51, train_batch_size=3)
        .settings.learning_starts
        == 9
    )
    with pytest.raises(UnknownNameError, match="gae_lambda"):
        PPOConfig().training(gae_lamda=0.5)
    with pytest.raises(UnknownNameError, match="learning_rate"):
        PPOConfig().update_from_dict({"learning_rat": 0.5})
    with pytest.raises(ConfigError, match="gamma"):
        PPOConfig().training(gamma=2.0)


@shows("algorithm_config_overrides_per_module")
def test_overrides_for_the_one_policy_are_its_settings():
    config = small().rl_module(
        algorithm_config_overrides_per_module={DEFAULT_MODULE_ID: PPOConfig.overrides(lr=0.5)}
    )
    config.validate()
    assert config.settings.learning_rate == config.lr == 0.5
    config = small().rl_module(algorithm_config_overrides_per_module={"other": {"lr": 0.5}})
    with pytest.raises(ConfigError, match="'other'"):
        config.validate()
    unread = {DEFAULT_MODULE_ID: {"clip_rewards": True}}
    with pytest.raises(ConfigError, match="clip_rewards"):
        small().rl_module(algorithm_config_overrides_per_module=unread).validate()
