"""Every name that the predecessors' users know is translated, or refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import train.sagemaker.original_names as original_names
from envs.common.errors import ConfigError
from train.config import Experiment
from train.sagemaker.hyperparameters import Task, own_overrides

TABLE = yaml.safe_load(
    Path(original_names.__file__).with_name("predecessors.yaml").read_text(encoding="utf-8")
)
RLLIBS: dict[str, dict[str, Any]] = TABLE["rl.training"]
EXPERIMENTS = {"ppo": "procgen-ppo", "dqn": "procgen-dqn", "apex": "battlesnake-apex"}
TRANSLATED = [name for name, row in RLLIBS.items() if "to" in row and "special" not in row]
COMPANIONS = {"config.num_atoms": {"rl.training.config.v_min": -5, "rl.training.config.v_max": 20}}
"""Names without which a setting means nothing."""
VALUES = {
    "run": "PPO",
    "stop.timesteps_total": 1000,
    "stop.time_total_s": 60,
    "stop.training_iteration": 5,
    "stop.episode_reward_mean": 5.0,
}
"""Values of names whose values the table doesn't list."""
SECTIONS = {
    "battlesnake": (
        "battlesnake-ppo",
        {
            "num_iters": 10,
            "num_agents": 5,
            "map_size": 11,
            "iterate_map_size": False,
            "algorithm": "PPO",
            "additional_configs": {"lambda": 0.9, "lr": 5e-4, "clip_rewards": False},
            "rewards": {"another_turn": 1.0, "died": -1.0},
            "use_heuristics_action_masks": False,
            "heuristics": ["banned_wall_hits"],
        },
    ),
    "mxnet": (
        "battlesnake-mxnet-starter-pack",
        {
            "map_size": "[15, 15]",
            "number_of_snakes": 4,
            "max_t": 1000,
            "snake_representation": "bordered-51s",
            "seed": 111,
            "seeds": [666],
            "qnetwork_type": "attention",
            "state_type": "one_versus_all",
        },
    ),
}


def outcome(sent: dict[str, Any], experiment: str) -> str:
    """What becomes of hyperparameters: they are taken, and the experiment has them, or refused."""
    try:
        task = Task.from_hyperparameters(
            {"experiment": experiment, **{name: json.dumps(value) for name, value in sent.items()}}
        )
    except ConfigError as error:
        return str(error)
    Experiment.load(task.experiment, task.overrides)
    return " ".join([*task.overrides, *task.notes])


def algorithm_of(row: dict[str, Any]) -> str:
    return row.get("only", "ppo").split(", ")[0]


@pytest.mark.parametrize("name", RLLIBS)
def test_each_of_rllibs_names_is_translated_or_refused(name):
    row = RLLIBS[name]
    algorithm = algorithm_of(row)
    values = row.get("examples") or [VALUES.get(name, row.get("only_value", 1))]
    for value in values:
        if name == "run" and value not in ("PPO", "DQN", "APEX"):
            continue
        sent = {f"rl.training.{name}": value, **COMPANIONS.get(name, {})}
        said = outcome(sent, EXPERIMENTS[algorithm])
        assert said or value is None or "to" not in row, name


@pytest.mark.parametrize("name", TRANSLATED)
def test_each_translated_name_changes_the_experiment(name):
    row = RLLIBS[name]
    for algorithm in row.get("only", algorithm_of(row)).split(", "):
        key = row["to"].format(algorithm=algorithm)
        value = next((value for value in row.get("examples", ()) if value is not None), 1)
        sent = {f"rl.training.{name}": value, **COMPANIONS.get(name, {})}
        said = outcome(sent, EXPERIMENTS[algorithm])
        assert key in said, said


@pytest.mark.parametrize("section", SECTIONS)
def test_the_battlesnake_packs_names(section):
    experiment, values = SECTIONS[section]
    for name, row in TABLE[section].items():
        value = values.get(name, row.get("only_value", 1))
        assert outcome({name: value}, experiment), name


def test_every_name_says_where_it_was_seen():
    for section in ("rl.training", "battlesnake", "mxnet", "two jobs"):
        for name, row in TABLE[section].items():
            if "seen" in row:
                repository, _, file = row["seen"].partition(":")
                assert file, name
                assert len(TABLE["sources"][repository]) == 40


def test_the_procgen_kits_own_script_is_understood():
    # sagemaker/source/train-sagemaker.py
    config = {
        "gamma": 0.999,
        "lambda": 0.95,
        "lr": 5.0e-4,
        "num_sgd_iter": 3,
        "kl_coeff": 0.0,
        "kl_target": 0.01,
        "vf_loss_coeff": 0.5,
        "entropy_coeff": 0.01,
        "clip_param": 0.2,
        "vf_clip_param": 0.2,
        "grad_clip": 0.5,
        "observation_filter": "NoFilter",
        "vf_share_layers": True,
        "soft_horizon": False,
        "no_done_at_end": False,
        "normalize_actions": False,
        "clip_actions": True,
        "ignore_worker_failures": True,
        "use_pytorch": False,
        "sgd_minibatch_size": 2048,
        "train_batch_size": 16384,
        "model.custom_model": "impala_cnn_tf",
        "num_workers": 6,
        "rollout_fragment_length": 140,
        "batch_mode": "truncate_episodes",
        "num_envs_per_worker": 12,
        "num_cpus_per_worker": 1,
        "num_cpus_for_driver": 1,
        "num_gpus_per_worker": 0.1,
        "num_gpus": 0.3,
        "explore": True,
        "exploration_config.type": "StochasticSampling",
        "env_config.env_name": "coinrun",
        "env_config.num_levels": 0,
        "env_config.start_level": 0,
        "env_config.paint_vel_info": False,
        "env_config.center_agent": True,
        "env_config.distribution_mode": "easy",
    }
    others = {"run": "PPO", "stop.training_iteration": 500, "checkpoint_freq": 20}
    sent = {f"rl.training.config.{name}": value for name, value in config.items()}
    sent |= {f"rl.training.{name}": value for name, value in others.items()}
    text = {name: json.dumps(value) for name, value in sent.items()}
    task = Task.from_hyperparameters({"experiment": "procgen-ppo", **text})
    experiment = Experiment.load(task.experiment, task.overrides)
    assert experiment.budget.total_agent_steps == 500 * 16384
    assert (experiment.settings.num_minibatches, experiment.settings.clip_vloss) == (8, True)
    assert (experiment.env.name, experiment.network.name) == ("procgen/coinrun", "impala")


def test_the_battlesnake_packs_notebook_is_understood():
    # source/RLlibEnv/2_PolicyTraining.ipynb, apart from clip_rewards
    config = {
        "lambda": 0.9,
        "gamma": 0.999,
        "kl_coeff": 0.2,
        "vf_clip_param": 175.0,
        "train_batch_size": 9216,
        "sample_batch_size": 96,
        "sgd_minibatch_size": 256,
        "num_sgd_iter": 3,
        "lr": 5.0e-4,
    }
    sent = {
        "num_iters": 10,
        "num_agents": 5,
        "map_size": 11,
        "iterate_map_size": False,
        "algorithm": "PPO",
        "additional_configs": config,
        "use_heuristics_action_masks": False,
    }
    text = {name: json.dumps(value) for name, value in sent.items()}
    task = Task.from_hyperparameters({"experiment": "battlesnake-ppo", **text})
    experiment = Experiment.load(task.experiment, task.overrides)
    options = experiment.env.options
    assert (options["num_snakes"], options["width"], options["height"]) == (5, 11, 11)
    assert (experiment.settings.num_steps, experiment.settings.num_minibatches) == (96, 36)
    assert experiment.budget.total_agent_steps == 10 * 9216 * 5
    said = outcome({**sent, "additional_configs": {"clip_rewards": True}}, "battlesnake-ppo")
    assert "rl.training.config.clip_rewards: set the rewards themselves" in said


def test_the_kits_second_job_needs_no_number_of_machines():
    sent = {
        "experiment": "x",
        "rl_cluster_type": "secondary",
        "s3_bucket": "b",
        "s3_prefix": "p",
        "aws_region": "eu-west-1",
    }
    meeting = Task.from_hyperparameters(sent).meeting
    assert meeting is not None
    assert not meeting.is_primary


def test_all_that_cant_be_kept_is_said_at_once():
    sent = {"rl.training.config.aux_lr": 5e-4, "rl.training.config.horizon": 100}
    said = outcome(sent, "procgen-ppo")
    assert "aux_lr: it is of a team's own trainer" in said
    assert "horizon: episodes end as the game says" in said


def test_a_launch_refuses_before_a_job_is_paid_for():
    overrides, notes = own_overrides("procgen-ppo", ["rl.training.config.lr=1e-4", "seed=7"])
    assert overrides == ["seed=7", "ppo.learning_rate=0.0001"]
    assert notes == []
    with pytest.raises(ConfigError, match="a team's own trainer"):
        own_overrides("procgen-ppo", ["rl.training.config.aux_lr=1"])
