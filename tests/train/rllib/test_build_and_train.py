"""What a changed value changes in an algorithm that is built, and in an iteration of it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import pytest
import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics.stats.min import MinStats

from tests.train.rllib.fields_shown import shows
from tests.train.rllib.small_runs import WORLD, learning, seen, small
from train.dqn import DQNConfig
from train.ppo import PPO, PPOLearner, PPORunner


class _Learner(PPOLearner):
    """A user's own, with a setting of its own."""

    def loss(self, *arguments: Any) -> tuple[torch.Tensor, dict[str, Any]]:
        loss, metrics = super().loss(*arguments)
        return self.config.learner_config_dict.get("factor", 1.0) * loss, metrics


class _Runner(PPORunner):
    """A user's own."""


class _Callback(RLlibCallback):
    """A user's own."""

    def on_sample_end(self, *, metrics_logger: Any = None, **_: Any) -> None:
        metrics_logger.log_value("sampled", 1.0, reduce="sum")
        for value in (1.0, 3.0):
            metrics_logger.log_value("largest", value, reduce="max")


class _Doubling(ConnectorV2):
    """Shows the learner each decision twice."""

    def __call__(self, *, batch: Any = None, **_: Any) -> Any:  # type: ignore[override]
        ((name, columns),) = batch.items()
        return {name: {key: torch.cat([column, column]) for key, column in columns.items()}}


# What a trial asks of the machine.
RESOURCES = {
    "num_env_runners": 3,
    "num_cpus_per_env_runner": 3,
    "num_gpus_per_env_runner": 0.5,
    "custom_resources_per_env_runner": {"a": 1},
    "num_learners": 3,
    "num_cpus_per_learner": 3,
    "num_gpus_per_learner": 2,
    "custom_resources_per_learner": {"a": 1},
    "num_cpus_for_main_process": 3,
    "custom_resources_for_main_process": {"a": 1},
    "placement_strategy": "SPREAD",
    "evaluation_num_env_runners": 2,
}
Probe = Callable[[Any], Any]


def _weights(algorithm: PPO, result: dict[str, Any]) -> Any:
    """The weights after an iteration: of two equal runs they are equal."""
    return {name: weight.tolist() for name, weight in algorithm.get_module().state_dict().items()}


def _steps(algorithm: PPO, result: dict[str, Any]) -> Any:
    return result["env_runners"]["num_env_steps_sampled_lifetime"]


def _learner(algorithm: PPO) -> PPOLearner:
    return algorithm.learner_group._learner


# What changes in an algorithm that is built: (value, what is looked at).
BUILT: dict[str, tuple[Any, Probe]] = {
    "env": ("corridor", lambda a: a.env_runner.env.observation_space.shape),
    "env_config": (
        {**WORLD, "num_actions": 3},
        lambda a: int(a.env_runner.env.single_action_space.n),
    ),
    "num_envs_per_env_runner": (3, lambda a: a.env_runner.num_envs),
    "env_runner_cls": (_Runner, lambda a: type(a.env_runner)),
    "_learner_class": (_Learner, lambda a: type(_learner(a))),
    "_model_config": (
        {"name": "mlp", "options": {"hidden_sizes": [8]}},
        lambda a: str(a.get_module()),
    ),
    "_rl_module_spec": (
        RLModuleSpec(model_config={"name": "mlp", "options": {"hidden_sizes": [9]}, "bf16": False}),
        lambda a: str(a.get_module()),
    ),
    "log_level": ("INFO", lambda a: logging.getLogger("ray.rllib").level),
    "log_sys_usage": (False, lambda a: a._monitor.is_alive()),
}
# What changes in an iteration: (value, what is looked at after it).
TRAINED: dict[str, tuple[Any, Callable[[Any, dict[str, Any]], Any]]] = {
    "lr": (1e-4, _weights),
    "gamma": (0.5, _weights),
    "grad_clip": (0.01, _weights),
    "num_epochs": (3, _weights),
    "rollout_fragment_length": (7, _steps),
    "train_batch_size": (8, _weights),
    "learning_starts": (8, _weights),
    "learner_config_dict": ({"factor": 0.5}, _weights),
    "stats_cls_lookup": (
        {**AlgorithmConfig().stats_cls_lookup, "max": MinStats},
        lambda a, result: result["env_runners"]["largest"],
    ),
    "metrics_num_episodes_for_smoothing": (
        1,
        lambda a, result: result["evaluation"]["env_runners"]["episode_return_mean"],
    ),
    "_learner_connector": (lambda *spaces: _Doubling(*spaces), _weights),
    "_train_batch_size_per_learner": (8 * 11, _steps),
    "minibatch_size": (16, _weights),
    "shuffle_batch_per_epoch": (False, _weights),
    "grad_clip_by": ("value", _weights),
    "log_gradients": (True, lambda a, result: sorted(result["learners"][DEFAULT_MODULE_ID])),
    "seed": (2, _weights),
    "_torch_lr_scheduler_classes": (
        (functools.partial(torch.optim.lr_scheduler.ConstantLR, factor=0.1),),
        _weights,
    ),
    "_torch_grad_scaler_class": (
        functools.partial(torch.amp.GradScaler, "cpu"),
        lambda a, result: sorted(result["learners"][DEFAULT_MODULE_ID]),
    ),
    "explore": (False, _weights),
    "callbacks_class": (_Callback, lambda a, result: result["env_runners"].get("sampled")),
    "min_sample_timesteps_per_iteration": (8 * 4 * 3, _steps),
    "min_train_timesteps_per_iteration": (8 * 4 * 20, _steps),
    "count_steps_by": ("agent_steps", _steps),
    # So long that a busy machine makes several steps, too.
    "min_time_s_per_iteration": (3.0, lambda a, result: _steps(a, result) > 8 * 4),
}


SHARED: dict[str, dict[str, Any]] = {
    "grad_clip_by": {"grad_clip": 0.01},
    # Episodes of more than a step.
    "gamma": {"env": "corridor"},
    "train_batch_size": {"kind": DQNConfig, "learning_starts": 8},
    "learning_starts": {"kind": DQNConfig, "train_batch_size": 8},
    "learner_config_dict": {"_learner_class": _Learner},
    "stats_cls_lookup": {"callbacks_class": _Callback},
    "metrics_num_episodes_for_smoothing": {"evaluation_interval": 1},
    # Two agents play a game of it.
    "count_steps_by": {"env": "corridor", "min_sample_timesteps_per_iteration": 8 * 4 * 3},
}
"""What both runs have, where a field means nothing without it."""


@shows("add_default_connectors_to_learner_pipeline")
def test_the_users_connectors_may_stand_alone():
    spaces = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
    assert len(small().build_learner_connector(*spaces).connectors) == 1
    config = small().learners(add_default_connectors_to_learner_pipeline=False)
    assert not config.build_learner_connector(*spaces).connectors


@shows(*RESOURCES)
@pytest.mark.parametrize("field", RESOURCES)
def test_a_trial_asks_for_what_is_configured(field):
    config = small().env_runners(num_env_runners=1).learners(num_learners=1)
    config.evaluation(evaluation_interval=1)
    before = PPO.default_resource_request(config)
    setattr(config, field, RESOURCES[field])
    assert PPO.default_resource_request(config) != before


@pytest.fixture(scope="module")
def untouched(one_ray) -> Iterator[Any]:
    """An algorithm as it is built."""
    algorithm = learning().build_algo()
    yield algorithm
    algorithm.stop()


@shows(*BUILT)
@pytest.mark.long
@pytest.mark.parametrize("field", BUILT)
def test_a_changed_value_changes_what_is_built(untouched, field):
    value, probe = BUILT[field]
    before = probe(untouched)
    assert seen(learning(**{field: value}), probe) != before


def iteration(probe: Any, **values: Any) -> Any:
    """What `probe` sees after an iteration of a run with these values."""
    return seen(learning(**values), lambda algorithm: probe(algorithm, algorithm.train()))


unchanged = functools.cache(iteration)
"""The same, for runs that several tests compare with."""


@functools.cache
def is_repeatable(probe: Any, **values: Any) -> bool:
    """Whether `probe` sees the same in another such run."""
    return bool(iteration(probe, **values) == unchanged(probe, **values))


@shows(*TRAINED)
@pytest.mark.long
@pytest.mark.parametrize("field", TRAINED)
def test_a_changed_value_changes_what_an_iteration_does(one_ray, field):
    value, probe = TRAINED[field]
    shared = SHARED.get(field, {})
    assert is_repeatable(probe, **shared)
    assert iteration(probe, **shared, **{field: value}) != unchanged(probe, **shared)
