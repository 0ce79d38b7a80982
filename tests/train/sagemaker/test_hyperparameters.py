"""Experiments through hyperparameters and back, as each generation of SDK sends them, and the
original kits' names.
"""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from envs.common.errors import ConfigError, UnknownNameError
from envs.procgen.levels import Levels
from train.config import Experiment
from train.sagemaker.hyperparameters import Meeting, Task, decode, encode, encode_overrides

MEETING = {
    "experiment": "x",
    "rl_cluster_type": "primary",
    "rl_num_instances_secondary": "1",
    "s3_bucket": "b",
    "s3_prefix": "p",
    "aws_region": "r",
}
NAMED = {"experiment": "battlesnake-ppo"}
OVERRIDES = [
    "ppo.learning_rate=3e-4",
    "ppo.anneal_lr=false",
    "env.options.num_games=32",
    "seed=7",
    "name='123'",
    "env.options.rewards=win",
    "ppo.target_kl=null",
    "network={name: mlp, options: {hidden_sizes: [64, 64]}}",
    "ppo.ent_coef=[[0, 0.01], [1000, 0]]",
    "scale={kind: single, instance: ml.c5.xlarge}",
]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_values_survive(value):
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    "text", ["1", "true", "null", '"quoted"', "[1]", "3e-4", "plain", "", "ml.c5.xlarge"]
)
def test_text_stays_text(text):
    assert decode(encode(text)) == text


def test_an_experiment_arrives_as_it_was_sent():
    wanted = Experiment.load("battlesnake-ppo", OVERRIDES)
    task = Task.from_hyperparameters(encode_overrides("battlesnake-ppo", OVERRIDES))
    assert Experiment.load(task.experiment, task.overrides) == wanted
    assert (task.meeting, task.notes) == (None, [])


@pytest.mark.parametrize("quoted", [True, False], ids=["SDK 1 and 2", "SDK 3"])
def test_each_sdk_is_understood(quoted):
    plain = {
        "experiment": "battlesnake-dqn",
        "dqn.gamma": 0.9,
        "env.options.rewards": "win",
        "dqn.noisy": True,
    }
    sent = {
        key: json.dumps(value) if quoted or not isinstance(value, str) else value
        for key, value in plain.items()
    }
    # Version 2 adds its own.
    sent |= {"sagemaker_region": '"eu-west-1"', "sagemaker_program": "x.py"}
    task = Task.from_hyperparameters(sent)
    experiment = Experiment.load(task.experiment, task.overrides)
    assert (
        experiment.settings.gamma,
        experiment.settings.noisy,
        experiment.env.options["rewards"],
    ) == (0.9, True, "win")


def kit(**values) -> dict[str, str]:
    return {
        "experiment": "procgen-ppo",
        **{name.replace("__", "."): json.dumps(value) for name, value in values.items()},
    }


def test_the_procgen_kits_baseline_means_what_it_meant():
    # sagemaker-rl-procgen-ray: source/common/procgen_parameters and the notebooks.
    task = Task.from_hyperparameters(
        {
            "experiment": "procgen-ppo",
            **{
                f"rl.training.{key}": json.dumps(value)
                for key, value in {
                    "run": "PPO",
                    "stop.timesteps_total": 8_000_000,
                    "stop.time_total_s": 7200,
                    "config.env_config.env_name": "bigfish",
                    "config.env_config.num_levels": 200,
                    "config.gamma": 0.999,
                    "config.lambda": 0.95,
                    "config.lr": 5e-4,
                    "config.num_sgd_iter": 3,
                    "config.train_batch_size": 16384,
                    "config.sgd_minibatch_size": 2048,
                    "config.rollout_fragment_length": 140,
                    "config.num_workers": 6,
                    "config.num_envs_per_worker": 12,
                    "config.clip_param": 0.2,
                    "config.vf_loss_coeff": 0.5,
                    "config.entropy_coeff": 0.01,
                    "config.grad_clip": 0.2,
                    "config.kl_coeff": 0.0,
                    "config.kl_target": 0.01,
                    "config.vf_clip_param": 0.2,
                    "checkpoint_freq": 1,
                    "config.model.custom_model": "impala_cnn_tf",
                }.items()
            },
        }
    )
    experiment = Experiment.load(task.experiment, task.overrides)
    assert (
        experiment.env.name,
        experiment.budget.total_agent_steps,
        experiment.budget.max_minutes,
    ) == (
        "procgen/bigfish",
        8_000_000,
        120,
    )
    assert (experiment.num_env_runners, experiment.env.options["num_games"]) == (6, 12)
    assert Levels.parse(experiment.env.options["levels"]) == Levels(start=0, num=200)
    ppo = experiment.settings
    assert (ppo.gamma, ppo.gae_lambda, ppo.learning_rate, ppo.num_epochs, ppo.num_minibatches) == (
        0.999,
        0.95,
        5e-4,
        3,
        8,
    )
    assert (ppo.num_steps, ppo.clip_coef, ppo.vf_coef, ppo.ent_coef, ppo.max_grad_norm) == (
        140,
        0.2,
        0.5,
        0.01,
        0.2,
    )
    assert (ppo.kl_coef, ppo.kl_target) == (0.0, 0.01)
    noted = " ".join(task.notes)
    assert "rl.training.checkpoint_freq is not used" in noted
    assert (ppo.clip_vloss, experiment.network.name) == (True, "impala")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        # sagemaker-rl-procgen-ray: source/spot/train-spot.py sets it for spot.
        ("upload_dir", "SageMaker copies"),
        ("checkpoint_score_attr", "checkpoints.best_metric"),
        ("disable_evaluation_worker", "evaluation"),
        ("config.vf_share_layers", "network.name"),
        ("config.use_gae", "ppo.gae_lambda"),
    ],
)
def test_what_the_kits_have_beside_the_algorithm_is_noted(name, reason):
    task = Task.from_hyperparameters({"experiment": "procgen-ppo", f"rl.training.{name}": "1"})
    (note,) = task.notes
    assert note.startswith(f"rl.training.{name} is not used: ")
    assert reason in note
    assert task.overrides == []


@pytest.mark.parametrize(("run", "algorithm"), [("DQN", "dqn"), ("APEX", "apex")])
def test_the_names_of_learning_from_replay(run, algorithm):
    names = {
        "config.buffer_size": 5000,
        "config.learning_starts": 50,
        "config.n_step": 2,
        "config.train_batch_size": 64,
        "config.prioritized_replay_alpha": 0.5,
        "config.num_workers": 2,
    }
    sent = {
        "experiment": f"battlesnake-{algorithm}",
        "rl.training.run": run,
        **{f"rl.training.{k}": str(v) for k, v in names.items()},
    }
    task = Task.from_hyperparameters(sent)
    settings = Experiment.load(task.experiment, task.overrides).settings
    assert (
        settings.replay_capacity,
        settings.learning_starts,
        settings.n_step,
        settings.train_batch_size,
    ) == (5000, 50, 2, 64)
    assert settings.priority_alpha == 0.5


def test_the_names_are_for_the_experiments_own_algorithm_if_no_run_is_named():
    sent = {
        "experiment": "battlesnake-dqn",
        "rl.training.config.gamma": "0.9",
        "rl.training.config.train_batch_size": "64",
    }
    task = Task.from_hyperparameters(sent)
    settings = Experiment.load(task.experiment, task.overrides).settings
    assert (settings.algorithm, settings.gamma, settings.train_batch_size) == ("dqn", 0.9, 64)


def test_the_experiment_may_be_a_file_that_the_job_carries(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        yaml.safe_dump(Experiment.load("battlesnake-dqn").to_dict())
    )
    task = Task.from_hyperparameters(
        {"experiment": "mine.yaml", "rl.training.config.gamma": "0.9"}, tmp_path
    )
    assert Experiment.load(task.experiment, task.overrides).settings.gamma == 0.9


def test_the_two_jobs_know_each_other_by_the_kits_names():
    meeting = Meeting(True, 2, "bucket", "runs/1", "eu-west-1")
    sent = {
        "experiment": "x",
        **{name: encode(value) for name, value in meeting.hyperparameters().items()},
    }
    assert set(sent) == {
        "experiment",
        "rl_cluster_type",
        "rl_num_instances_secondary",
        "s3_bucket",
        "s3_prefix",
        "aws_region",
    }
    task = Task.from_hyperparameters(sent)
    assert task.meeting == meeting
    assert task.overrides == []
    # As the kits' estimators quoted them.
    assert (
        Task.from_hyperparameters(
            {**sent, "s3_bucket": '"bucket"', "rl_num_instances_secondary": '"2"'}
        ).meeting
        == meeting
    )


@pytest.mark.parametrize(
    ("sent", "error", "message"),
    [
        ({}, ConfigError, "no hyperparameter names the experiment"),
        (
            {"experiment": "x", "rl_cluster_type": "primary"},
            ConfigError,
            "not rl_num_instances_secondary, s3_bucket",
        ),
        ({**MEETING, "rl_cluster_type": "third"}, ConfigError, "must be primary or secondary"),
        ({**MEETING, "rl_num_instances_secondary": "two"}, ConfigError, "is not a number"),
        (
            {**NAMED, "rl.training.config.gama": "1"},
            UnknownNameError,
            "Did you mean 'rl.training.config.gamma'",
        ),
        ({**NAMED, "rl.training.run": "PPOO"}, UnknownNameError, "Did you mean 'PPO'"),
        ({**NAMED, "rl.training.stop.time_total_s": "soon"}, ConfigError, "is not a number"),
    ],
)
def test_mistakes_are_named(sent, error, message):
    with pytest.raises(error, match=message):
        Task.from_hyperparameters(sent)


@pytest.mark.parametrize("sent", ["train-snake.py", '"train-snake.py"'])
def test_a_script_that_an_estimator_names_is_not_dropped_silently(sent):
    task = Task.from_hyperparameters({"experiment": "battlesnake-ppo", "sagemaker_program": sent})
    (note,) = task.notes
    assert (
        "entry_point 'train-snake.py' is not run: this image trains the experiment"
        " 'battlesnake-ppo'" in note
    )
    assert task.overrides == []


@pytest.mark.parametrize(
    "override",
    ["no-equals", "=1", "env.options.day=2020-13-45", "env.options.x=[1", "x=" + "[" * 2000],
)
def test_overrides_of_another_form_are_refused_before_a_job_is_paid_for(override):
    with pytest.raises(ConfigError, match="override "):
        encode_overrides("battlesnake-ppo", [override])
