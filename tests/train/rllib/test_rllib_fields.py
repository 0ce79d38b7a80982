"""Every field of the installed RLlib's `AlgorithmConfig` does what it says, or is refused by
name.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
import torch
from ray import tune
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.metrics.stats.mean import MeanStats

from envs.common.errors import ConfigError, UnknownNameError
from tests.train import small_worlds
from tests.train.rllib.test_rllib_offline import (
    JUDGED,
    OFFLINE_RESOURCES,
    OFFLINE_TRAINED,
    RECORDED,
    RUNNERS,
)
from train.apex import APEXConfig
from train.appo import APPOConfig
from train.dqn import DQNConfig
from train.ppo import PPO, PPOConfig, PPOLearner, PPORunner
from train.rllib.batched_config import BatchedConfig
from train.rllib.modules import NetworkModule
from train.rllib.rllib_fields import REFUSED, RELICS, SAME_MEANING, SET_BY_RLLIB
from train.settings import PPOSettings

FIELDS = set(vars(AlgorithmConfig()))
WORLD = {"imports": ["tests.train.small_worlds"]}


def small(kind: type[BatchedConfig] = PPOConfig) -> Any:
    config = kind().environment("identity", env_config=WORLD).debugging(seed=1)
    return config.env_runners(num_envs_per_env_runner=8, rollout_fragment_length=4)


class _Learner(PPOLearner):
    """A user's own."""


class _Runner(PPORunner):
    """A user's own."""


class _Callback(RLlibCallback):
    """A user's own."""

    def on_sample_end(self, *, metrics_logger: Any = None, **_: Any) -> None:
        metrics_logger.log_value("sampled", 1.0, reduce="sum")


class _Doubling(ConnectorV2):
    """Shows the learner each decision twice."""

    def __call__(self, *, batch: Any = None, **_: Any) -> Any:  # type: ignore[override]
        ((name, columns),) = batch.items()
        return {name: {key: torch.cat([column, column]) for key, column in columns.items()}}


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
    "learner_config_dict": ({"mine": 1}, lambda a: _learner(a).config.learner_config_dict),
    "_model_config": (
        {"name": "mlp", "options": {"hidden_sizes": [8]}},
        lambda a: str(a.get_module()),
    ),
    "_rl_module_spec": (
        RLModuleSpec(model_config={"name": "mlp", "options": {"hidden_sizes": [9]}, "bf16": False}),
        lambda a: str(a.get_module()),
    ),
    "stats_cls_lookup": (
        {**AlgorithmConfig().stats_cls_lookup, "mine": MeanStats},
        lambda a: "mine" in a.env_runner.metrics.stats_cls_lookup,
    ),
    "log_level": ("INFO", lambda a: logging.getLogger("ray.rllib").level),
}
# What changes in an iteration: (value, what is looked at after it).
TRAINED: dict[str, tuple[Any, Callable[[Any, dict[str, Any]], Any]]] = {
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
    "min_time_s_per_iteration": (
        0.3,
        lambda a, result: result["time_total_s"] > 0.3 or _steps(a, result),
    ),
}
CALLED = {
    "callbacks_on_algorithm_init": 1,
    "callbacks_on_environment_created": 2,
    "callbacks_on_episode_created": 32,
    "callbacks_on_episode_start": 32,
    "callbacks_on_episode_step": 32,
    "callbacks_on_episode_end": 32,
    "callbacks_on_sample_end": 2,
    "callbacks_on_train_result": 1,
    "callbacks_on_evaluate_start": 1,
    "callbacks_on_evaluate_end": 1,
    "callbacks_on_checkpoint_loaded": 1,
}
"""How often they are called, at least, in one iteration, one evaluation and one restore."""
EVALUATED: dict[str, tuple[dict[str, Any], Probe]] = {
    "evaluation_interval": ({"evaluation_interval": 1}, lambda r: "evaluation" in r),
    "evaluation_duration": (
        {"evaluation_interval": 1, "evaluation_duration": 30},
        lambda r: _evaluated(r)["num_episodes"],
    ),
    "evaluation_duration_unit": (
        {
            "evaluation_interval": 1,
            "evaluation_duration": 80,
            "evaluation_duration_unit": "timesteps",
        },
        lambda r: _evaluated(r)["num_env_steps_sampled"],
    ),
    "evaluation_config": (
        {"evaluation_interval": 1, "evaluation_config": {"num_envs_per_env_runner": 3}},
        lambda r: _evaluated(r)["num_env_steps_sampled"],
    ),
    "metrics_num_episodes_for_smoothing": (
        {"evaluation_interval": 1, "evaluation_duration": 30},
        lambda r: _evaluated(r)["episode_return_mean"],
    ),
    "custom_evaluation_function": (
        {
            "evaluation_interval": 1,
            "custom_evaluation_function": lambda algorithm, group: ({"x": 1}, 1, 1),
        },
        lambda r: _evaluated(r),
    ),
}
IN_TESTS_BELOW = {
    "output",
    "observation_space",
    "action_space",
    "add_default_connectors_to_learner_pipeline",
    "algorithm_config_overrides_per_module",
    "restart_failed_sub_environments",
    "env_runner_state_server_max_concurrency",
    "input_read_schema",
}
"""Fields with a test of their own: here, in test_rllib_offline.py or test_weight_servers.py."""
READ_BY_RLLIB = {
    "num_consecutive_env_runner_failures_tolerance",
    "torch_skip_nan_gradients",
    # Where env runners have processes of their own, which test_many_processes.py kills.
    "create_env_on_local_worker",
    "create_local_env_runner",
    "ignore_env_runner_failures",
    "restart_failed_env_runners",
    "max_num_env_runner_restarts",
    "delay_between_env_runner_restarts_s",
    "env_runner_health_probe_timeout_s",
    "env_runner_restore_timeout_s",
    "callbacks_on_env_runners_recreated",
    "validate_env_runners_after_construction",
    "max_requests_in_flight_per_env_runner",
    "sample_timeout_s",
    "count_steps_by",
    "log_sys_usage",
    "_use_msgpack_checkpoints",
    "_validate_config",
    # Where evaluation has processes of its own.
    "evaluation_num_env_runners",
    "evaluation_parallel_to_training",
    "evaluation_sample_timeout_s",
    "evaluation_force_reset_envs_before_iteration",
    "evaluation_auto_duration_min_env_steps_per_sample",
    "evaluation_auto_duration_max_env_steps_per_sample",
    "evaluation_unhealthy_workers_timeout_s",
    "evaluation_error_after_n_consecutive_skips",
    # Where offline evaluation has.
    "offline_evaluation_duration",
    "offline_evaluation_parallel_to_training",
    "offline_evaluation_timeout_s",
    "offline_eval_runner_restore_timeout_s",
    "offline_eval_rl_module_inference_only",
    "callbacks_on_offline_eval_runners_recreated",
    # Several learners, GPUs, torch.compile.
    "local_gpu_idx",
    "torch_ddp_kwargs",
    "torch_compile_learner",
    "torch_compile_learner_what_to_compile",
    "torch_compile_learner_dynamo_backend",
    "torch_compile_learner_dynamo_mode",
}
"""Fields of RLlib's own code, which is inherited as it is; `test_what_rllib_reads_is_inherited`
holds that it is.
"""


SHOWN = {
    *SETTINGS,
    *RESOURCES,
    *BUILT,
    *TRAINED,
    *CALLED,
    *EVALUATED,
    *RECORDED,
    *JUDGED,
    *RUNNERS,
    *OFFLINE_RESOURCES,
    *OFFLINE_TRAINED,
    *IN_TESTS_BELOW,
}
"""Fields of which a test shows that a changed value changes something."""


def _evaluated(result: dict[str, Any]) -> dict[str, Any]:
    return result.get("evaluation", {}).get("env_runners", {})


def test_every_field_of_the_installed_ray_is_accounted_for():
    honoured = SHOWN | READ_BY_RLLIB
    assert not SHOWN & READ_BY_RLLIB
    assert not honoured & {*REFUSED, *RELICS} - set(SAME_MEANING)
    assert honoured | {*REFUSED, *RELICS, *SET_BY_RLLIB} == FIELDS
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


def test_dqn_refuses_what_only_minibatches_have():
    for field, value in {
        "num_epochs": 3,
        "minibatch_size": 3,
        "shuffle_batch_per_epoch": False,
    }.items():
        with pytest.raises(ConfigError, match=field):
            small(DQNConfig).training(**{field: value}).validate()


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


def test_overrides_for_the_one_policy_are_its_settings():
    config = small().rl_module(
        algorithm_config_overrides_per_module={DEFAULT_MODULE_ID: PPOConfig.overrides(lr=0.5)}
    )
    config.validate()
    assert config.settings.learning_rate == config.lr == 0.5
    config = small().rl_module(algorithm_config_overrides_per_module={"other": {"lr": 0.5}})
    with pytest.raises(ConfigError, match="'other'"):
        config.validate()


def test_the_users_connectors_may_stand_alone():
    spaces = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
    assert len(small().build_learner_connector(*spaces).connectors) == 1
    config = small().learners(add_default_connectors_to_learner_pipeline=False)
    assert not config.build_learner_connector(*spaces).connectors


@pytest.mark.parametrize("field", ["observation_space", "action_space"])
def test_a_world_is_held_to_the_spaces_that_are_declared(field):
    world = small().make_world()
    config = small().environment(**{field: getattr(world, f"single_{field}")})
    config.make_world()
    with pytest.raises(ConfigError, match=field):
        small().environment(**{field: gymnasium.spaces.Discrete(9)}).make_world()


class FailingWorld(small_worlds.IdentityWorld):
    """Fails at the steps whose numbers are in `failing`."""

    failing: ClassVar[set[int]] = set()
    steps: ClassVar[int] = 0

    def advance(self, actions: np.ndarray) -> None:
        type(self).steps += 1
        if self.steps in self.failing:
            raise RuntimeError("it broke")
        super().advance(actions)


def test_a_world_that_fails_is_made_anew_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(FailingWorld, "failing", {2, 5})
    for restarts in (True, False):
        monkeypatch.setattr(FailingWorld, "steps", 0)
        config = small().environment(FailingWorld, env_config={})
        config.fault_tolerance(restart_failed_sub_environments=restarts).validate()
        runner = config.env_runner_cls(config=config, worker_index=0, num_workers=0)
        world = runner.env
        if restarts:
            (fragment,) = runner.sample()
            assert fragment.env_steps() == 8 * 4
            assert runner.env is not world
            assert runner.get_metrics()["num_env_step_failures"].peek() == 2
        else:
            with pytest.raises(RuntimeError, match="it broke"):
                runner.sample()


@pytest.mark.parametrize("field", RESOURCES)
def test_a_trial_asks_for_what_is_configured(field):
    config = small().env_runners(num_env_runners=1).learners(num_learners=1)
    before = PPO.default_resource_request(config)
    setattr(config, field, RESOURCES[field])
    assert PPO.default_resource_request(config) != before


def test_what_an_algorithm_needs_is_asked_for_when_it_is_built():
    with pytest.raises(ConfigError, match="num_env_runners=1"):
        small(APEXConfig).validate()
    with pytest.raises(ConfigError, match="lr: a space to search"):
        small().training(lr=tune.grid_search([0.1])).validate()


def test_single_actions_are_the_modules(one_ray):
    algorithm = small().build_algo()
    try:
        algorithm.train()
        seen = np.full((1, 1, 4), 9, np.uint8)
        logits = algorithm.get_module().forward_inference({"obs": torch.from_numpy(seen[None])})[
            "action_dist_inputs"
        ][0]
        assert algorithm.compute_single_action(seen, explore=False) == int(logits.argmax())
        mask = np.arange(4) != int(logits.argmax())
        assert algorithm.compute_single_action(seen, action_mask=mask, explore=False) == int(
            logits.argsort()[-2]
        )
        assert len({algorithm.compute_single_action(seen) for _ in range(60)}) > 1
        with pytest.raises(ConfigError, match="get_module"):
            algorithm.get_policy()
        before = algorithm.get_module().state_dict()
        algorithm.train()
        after = algorithm.get_module().state_dict()
        assert any(not torch.equal(before[name], after[name]) for name in before)
    finally:
        algorithm.stop()


def test_worlds_come_by_class_and_by_rays_own_registration_and_others_are_refused(one_ray):
    tune.register_env("registered-by-a-user", lambda options: small_worlds.IdentityWorld(**options))
    for world in ("registered-by-a-user", small_worlds.IdentityWorld):
        config = small().environment(world, env_config={"num_actions": 3})
        assert (
            _seen(config, lambda algorithm: int(algorithm.env_runner.env.single_action_space.n))
            == 3
        )
    tune.register_env("pole", lambda options: gymnasium.make("CartPole-v1"))
    with pytest.raises(ConfigError, match="BatchEnv"):
        small().environment("pole", env_config={}).build_algo()


def _seen(config: Any, probe: Probe) -> Any:
    algorithm = config.build_algo()
    try:
        return probe(algorithm)
    finally:
        algorithm.stop()


@pytest.fixture(scope="module")
def untouched(one_ray) -> Iterator[Any]:
    """An algorithm as it is built."""
    algorithm = learning().build_algo()
    yield algorithm
    algorithm.stop()


def learning(**values: Any) -> Any:
    """A run that is the same in each test, without a limit to its gradients, of which RLlib would
    log the norm.
    """
    config = small().training(
        num_threads=1, bf16=False, lr=0.01, grad_clip=values.pop("grad_clip", None)
    )
    for field, value in values.items():
        setattr(config, field, value)
    return config


@pytest.mark.long
@pytest.mark.parametrize("field", BUILT)
def test_a_changed_value_changes_what_is_built(untouched, field):
    value, probe = BUILT[field]
    before = probe(untouched)
    assert _seen(learning(**{field: value}), probe) != before


@functools.cache
def iteration(probe: Any, **values: Any) -> Any:
    """What `probe` sees after an iteration of a run with these values."""
    return _seen(learning(**values), lambda algorithm: probe(algorithm, algorithm.train()))


@pytest.mark.long
@pytest.mark.parametrize("field", TRAINED)
def test_a_changed_value_changes_what_an_iteration_does(one_ray, field):
    value, probe = TRAINED[field]
    shared = {"grad_clip": 0.01} if field == "grad_clip_by" else {}
    assert iteration(probe, **shared) == iteration(probe, **shared)
    assert iteration(probe, **shared, **{field: value}) != iteration(probe, **shared)


CALLS: dict[str, list[dict[str, Any]]] = {}


def _note(field: str, **arguments: Any) -> None:
    CALLS.setdefault(field, []).append(arguments)


def test_call_backs_fire_with_what_they_promise(one_ray, tmp_path):
    CALLS.clear()
    config = small().evaluation(evaluation_interval=1, evaluation_duration=3)
    config.callbacks(
        **{field.removeprefix("callbacks_"): functools.partial(_note, field) for field in CALLED}
    )
    algorithm = config.build_algo()
    try:
        algorithm.train()
        algorithm.save_to_path(tmp_path)
        algorithm.restore(str(tmp_path))
    finally:
        algorithm.stop()
    for field, least in CALLED.items():
        assert len(CALLS.get(field, ())) >= least, field
    ended = CALLS["callbacks_on_episode_end"][0]
    episode = ended["episode"]
    assert (len(episode), episode.is_terminated, ended["env"].num_envs) == (1, True, 8)
    assert episode.get_return() == float(
        np.argmax(episode.get_observations(0).ravel()) == episode.get_actions(0)
    )
    assert isinstance(ended["rl_module"], NetworkModule)
    assert CALLS["callbacks_on_sample_end"][0]["samples"][0].env_steps() == 8 * 4


@pytest.mark.long
@pytest.mark.parametrize("field", EVALUATED)
def test_evaluation_does_what_rllib_documents(one_ray, field):
    arguments, probe = EVALUATED[field]
    without = {name: value for name, value in arguments.items() if name != field}
    if field == "evaluation_duration_unit":
        without = {**arguments, "evaluation_duration_unit": "episodes"}
    config = small()
    plain = small()
    if field == "metrics_num_episodes_for_smoothing":
        config.reporting(metrics_num_episodes_for_smoothing=1)
    if field == "evaluation_duration_unit":
        config.environment("corridor", env_config=WORLD)
        plain.environment("corridor", env_config=WORLD)
    changed = _seen(config.evaluation(**arguments), lambda algorithm: probe(algorithm.train()))
    before = _seen(plain.evaluation(**without), lambda algorithm: probe(algorithm.train()))
    assert changed != before


def test_an_evaluation_plays_as_many_episodes_as_were_asked_for(one_ray):
    config = small().evaluation(evaluation_interval=1, evaluation_duration=20)
    result = _seen(config, lambda algorithm: algorithm.train()["evaluation"]["env_runners"])
    # As with RLlib's own: at most one per game more.
    assert 20 <= result["num_episodes"] < 20 + 8
    assert (
        0
        <= result["episode_return_min"]
        <= result["episode_return_mean"]
        <= result["episode_return_max"]
        <= 1
    )


def test_what_rllib_reads_is_inherited():
    """The methods of RLlib's that read these fields are not overridden, so that they mean what
    RLlib says.
    """
    inherited = (
        "train",
        "step",
        "evaluate",
        "_evaluate_with_fixed_duration",
        "_evaluate_with_auto_duration",
        "save_to_path",
    )
    for name in inherited:
        assert name not in {key for one in PPO.__mro__[:2] for key in vars(one)}, name
    assert READ_BY_RLLIB <= FIELDS
