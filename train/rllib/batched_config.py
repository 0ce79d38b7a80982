"""RLlib's configuration of a run, for people who know RLlib: its names and ours mean the same.

`train.rllib.rllib_fields` says what becomes of each of RLlib's fields.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.connectors.learner import (
    AddNextObservationsFromEpisodesToTrainBatch,
    LearnerConnectorPipeline,
)
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.framework import get_device
from ray.tune.search.sample import Domain

import envs
from envs.api import BatchEnv
from envs.common.errors import ConfigError, UnknownNameError
from envs.common.parts import import_modules
from train.compute.bfloat16 import has_fast_bfloat16
from train.config import Experiment
from train.rllib.connector import FragmentsToBatch
from train.rllib.env_runner_failures import TOLERATED_FAILURES
from train.rllib.modules import NetworkModule
from train.rllib.offline_evaluation import (
    OFFLINE_EVALUATION,
    check_offline_evaluation,
    unlikelihood,
)
from train.rllib.rllib_fields import INSTEAD, OTHER_NAMES, REFUSED, RELICS, SAME_MEANING
from train.rllib.world_names import register_worlds
from train.settings import AlgorithmSettings, RolloutSettings
from train.settings.algorithm import NetworkSettings
from train.worlds.build import make_world, world_options

if TYPE_CHECKING:
    # Python 3.10's typing doesn't have it.
    from typing_extensions import Self

    from train.rllib.env_runner import BatchEnvRunner

AUTO = "auto"
"""The `rollout_fragment_length` that follows from `train_batch_size_per_learner`, and the
`evaluation_duration` of an iteration of training."""
_UNREAD = "RLlib's new API stack doesn't read it"


class BatchedConfig(AlgorithmConfig):
    """RLlib's configuration for env runners that play a whole `BatchEnv`.

    `settings` are the algorithm's own. RLlib's fields of the same meaning (`lr`, `gamma`, …) show
    them, and setting one changes them. Our names may be set and read like fields, too
    (`config.ent_coef`). `validate` raises `ConfigError` for a field that the trainers don't
    support, and names the alternative.

    A subclass names the algorithm and its settings in `__init__`, and its other classes by
    `runner_and_module` and RLlib's `get_default_learner_class`."""

    env: str | type | None  # type: ignore[assignment]  # RLlib's is untyped
    num_envs_per_env_runner: int | None  # type: ignore[assignment]
    rollout_fragment_length: int | str  # type: ignore[assignment]
    evaluation_duration: int | str  # type: ignore[assignment]
    settings: RolloutSettings
    has_weight_servers = False
    """Whether env runners ask servers for the newest weights."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class)
        register_worlds()
        # There are no connectors between worlds and policies. Asking for their states after each
        # iteration would wait for all that env runners are doing, and take what they failed at with
        # it.
        self.env_runners(merge_env_runner_states=False, broadcast_env_runner_states=False)
        self.output_write_episodes = False
        self.offline_loss_for_module_fn: Any = unlikelihood
        self.shuffle_batch_per_epoch = True
        self.num_consecutive_env_runner_failures_tolerance = TOLERATED_FAILURES
        self.delay_between_env_runner_restarts_s = 0.0
        # As many games as the world has by default.
        self.num_envs_per_env_runner = None
        self.log_level = "ERROR"

    @classmethod
    def from_experiment(cls, experiment: Experiment) -> Self:
        """Return the configuration of a run."""
        config = cls()
        config.settings = experiment.settings_as(RolloutSettings)
        config.environment(experiment.env.name, env_config=world_options(experiment))
        config.env_runners(num_env_runners=experiment.num_env_runners)
        config.learners(
            num_learners=experiment.num_learners,
            num_gpus_per_learner=experiment.num_gpus_per_learner,
        )
        network = experiment.network
        config.rl_module(
            model_config={
                "name": network.name,
                "options": dict(network.options),
                "imports": experiment.modules,
            }
        )
        config.debugging(seed=experiment.seed)
        return config

    # RLlib's names and ours.

    def __setattr__(self, key: str, value: Any) -> None:
        super().__setattr__(key, value)
        if key == "settings":
            self._show_settings()
        elif (name := self._setting_of(key)) and not _is_open(value):
            if key not in _RLLIBS_FIELDS:
                del self.__dict__[key]
            # RLlib's None is our 0: no limit.
            value = 0.0 if value is None and key == "grad_clip" else value
            self._change_setting(name, value)

    def __getattr__(self, key: str) -> Any:
        # Only for what isn't a field of RLlib's.
        if key.startswith("__") or not (name := self._setting_of(key)):
            raise AttributeError(f"{type(self).__name__} has no field {key!r}")
        return getattr(self.settings, name)

    def _setting_of(self, key: str) -> str | None:
        """The name of our setting that `key` means; None if it is RLlib's alone."""
        settings = self.__dict__.get("settings")
        if settings is None or (key in RELICS and key not in SAME_MEANING):
            return None
        name = SAME_MEANING.get(key) or OTHER_NAMES.get(key) or key
        if name in {field.name for field in dataclasses.fields(settings)}:
            return name
        return None

    def _change_setting(self, name: str, value: Any) -> None:
        self.settings = dataclasses.replace(self.settings, **{name: value})

    def _shown(self, settings: AlgorithmSettings) -> dict[str, Any]:
        """RLlib's fields for these settings."""
        names = {field.name for field in dataclasses.fields(settings)}
        shown = {
            key: getattr(settings, name) for key, name in SAME_MEANING.items() if name in names
        }
        return {key: value or None if key == "grad_clip" else value for key, value in shown.items()}

    def _show_settings(self) -> None:
        for key, value in self._shown(self.settings).items():
            if not _is_open(self.__dict__.get(key)):
                self.__dict__[key] = value

    def training(self, **values: Any) -> Self:
        """Set RLlib's own fields, or our settings by our names or those of RLlib's PPO and DQN."""
        ours = {
            key: value
            for key, value in values.items()
            if self._setting_of(key) and key not in _TRAINING
        }
        ours |= {key: values[key] for key in ("optimizer",) if isinstance(values.get(key), str)}
        for key, value in ours.items():
            if key == "optimizer":
                self._change_setting(key, value)
            else:
                setattr(self, key, value)
        try:
            return super().training(
                **{key: value for key, value in values.items() if key not in ours}
            )
        except TypeError as error:
            unknown = next((key for key in values if f"'{key}'" in str(error)), "")
            if not unknown:
                raise
            raise self._unknown(unknown) from None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, by RLlib's names and ours."""
        own = {
            field.name: getattr(self.settings, field.name)
            for field in dataclasses.fields(self.settings)
        }
        return {
            name: value for name, value in own.items() if name not in _RLLIBS_FIELDS
        } | super().to_dict()

    def update_from_dict(self, config_dict: Mapping[str, Any]) -> Self:
        """Take over fields by RLlib's names or ours. Raises `UnknownNameError` for others."""
        values = dict(config_dict)
        if (settings := values.pop("settings", None)) is not None:
            self.settings = settings
            # What only shows the settings must not undo what is changed beside them.
            shown = dataclasses.asdict(settings) | self._shown(settings)
            values = {
                key: value
                for key, value in values.items()
                if key not in shown or value != shown[key]
            }
        for key in values:
            field = self._translate_special_keys(key, warn_deprecated=False)
            known = (
                key in _RLLIBS_KEYS
                or field in vars(self)
                or hasattr(type(self), field)
                or self._setting_of(key)
            )
            if not (known or key.startswith("_")):
                raise self._unknown(key)
        if isinstance(values.get("optimizer"), str):
            self._change_setting("optimizer", values.pop("optimizer"))
        return super().update_from_dict(values)

    def _unknown(self, key: str) -> UnknownNameError:
        ours = [field.name for field in dataclasses.fields(self.settings)]
        return UnknownNameError("setting", key, sorted({*ours, *OTHER_NAMES, *_RLLIBS_FIELDS}))

    # What follows from the fields when they are complete.

    def validate(self) -> None:
        if not self._is_frozen:
            self._take_over_overrides()
            if self._validate_config:
                self._refuse_what_is_not_honoured()
            self._complete()
        super().validate()

    def _refuse_what_is_not_honoured(self) -> None:
        fresh = type(self)()
        for key, reason in self._not_honoured().items():
            if self._was_changed(key, fresh):
                raise ConfigError(
                    f"RLlib's setting {key.removeprefix('_')} has no effect on"
                    f" {self.settings.algorithm}: {reason}"
                )
        recorded = sorted(key for key in OFFLINE_EVALUATION if self._was_changed(key, fresh))
        check_offline_evaluation(self, recorded)

    def _not_honoured(self) -> dict[str, str]:
        """Return why this algorithm doesn't honour a field, by the field."""
        reasons = dict.fromkeys(sorted(RELICS), f"{_UNREAD}; leave it out")
        reasons |= {key: f"{_UNREAD}; {use}" for key, use in INSTEAD.items()}
        reasons |= REFUSED
        if self.settings.learns_from_rollouts:
            reasons["learning_starts"] = "it learns from its first rollout on"
        else:
            batches = "each update is one step, with a batch of train_batch_size decisions"
            minibatches = ("num_epochs", "minibatch_size", "shuffle_batch_per_epoch")
            reasons |= dict.fromkeys(minibatches, batches)
        if not self.has_weight_servers:
            reasons["env_runner_state_server_max_concurrency"] = (
                "only appo and apex have weight servers"
            )
            if self.evaluation_duration != AUTO:
                reasons["max_requests_in_flight_per_env_runner"] = (
                    "it waits for all env runners; only appo, apex and evaluation_duration='auto'"
                    " ask ahead"
                )
        return reasons

    def _was_changed(self, key: str, fresh: BatchedConfig) -> bool:
        """Whether the user has changed a field; RLlib itself changes some when it validates, saves
        or evaluates.
        """
        value = getattr(self, key)
        if key == "policies":
            return set(value) != set(fresh.policies)
        if key == "simple_optimizer":
            return value is True
        if key == "batch_mode" and self.in_evaluation:
            return False
        return not _equal(value, getattr(fresh, key))

    def _complete(self) -> None:
        """Set the classes and what else follows."""
        spaces = [
            key
            for key, value in vars(self).items()
            if self._setting_of(key) and _is_open(value) and value != AUTO
        ]
        if spaces:
            raise ConfigError(
                f"{', '.join(spaces)}: a space to search; give the configuration to tune.Tuner,"
                " which draws values"
            )
        register_worlds()
        runner_class, _ = self.runner_and_module()
        if self.env_runner_cls is None or not issubclass(self.env_runner_cls, runner_class):
            self.env_runners(env_runner_cls=runner_class)
        if self._train_batch_size_per_learner and not self.settings.learns_from_rollouts:
            self.train_batch_size = self.total_train_batch_size

    def _take_over_overrides(self) -> None:
        """Set what is overridden for the one policy."""
        overrides = self.algorithm_config_overrides_per_module
        if others := sorted(overrides.keys() - {DEFAULT_MODULE_ID}):
            raise ConfigError(
                f"algorithm_config_overrides_per_module names {others[0]!r}, and the one policy is"
                f" {DEFAULT_MODULE_ID!r}"
            )
        self.update_from_dict(overrides.get(DEFAULT_MODULE_ID, {}))

    def build_learner_connector(
        self, input_observation_space: Any, input_action_space: Any, device: Any = None
    ) -> LearnerConnectorPipeline:
        """Make a learner's pipeline: our connector that turns fragments into a batch, then the
        user's own. For recorded data it is RLlib's.
        """
        spaces = input_observation_space, input_action_space
        if self.in_evaluation:
            pipeline: Any = super().build_learner_connector(*spaces, device)
            if not self.settings.learns_from_rollouts:
                # Single decisions, whose targets need the observation that came next.
                pipeline.prepend(AddNextObservationsFromEpisodesToTrainBatch())
            assert isinstance(pipeline, LearnerConnectorPipeline)
            return pipeline
        fragments = []
        if self.add_default_connectors_to_learner_pipeline:
            fragments = [self.batch_connector(*spaces)]
        own: Any = self._learner_connector(*spaces) if self._learner_connector else []
        return LearnerConnectorPipeline(
            input_observation_space=input_observation_space,
            input_action_space=input_action_space,
            connectors=[
                *fragments,
                *(own if isinstance(own, list | tuple) else [own]),
            ],
        )

    def batch_connector(self, observation_space: Any, action_space: Any) -> ConnectorV2:
        """Return the connector that turns fragments into a batch."""
        return FragmentsToBatch(observation_space, action_space)

    def rollout_steps(self, num_rows: int) -> int:
        """Return the steps of every game in a rollout of `num_rows` rows.

        If set, RLlib's `train_batch_size_per_learner` is the number of decisions per update."""
        settings = self.settings
        derives_steps = settings.learns_from_rollouts and self._asks_for_batch_size()
        if self.in_evaluation or not derives_steps:
            return settings.num_steps
        rows = num_rows * settings.fragments_per_update(self.num_env_runners)
        return max(1, -(-self.total_train_batch_size // rows))

    def _asks_for_batch_size(self) -> bool:
        is_set = (
            self._train_batch_size_per_learner is not None
            or self.train_batch_size != AlgorithmConfig().train_batch_size
        )
        return is_set or self.rollout_fragment_length == AUTO

    @property
    def plays_on_gpu(self) -> bool:
        """Whether one process plays and learns, and has a GPU for both."""
        return self.num_gpus_per_learner > 0 and not self.num_learners and not self.num_env_runners

    def _gpu(self) -> torch.device | None:
        """The GPU of a process that plays and learns there, if it has one."""
        if self.plays_on_gpu and torch.cuda.is_available():
            return get_device(self, self.num_gpus_per_learner)
        return None

    def runner_and_module(self) -> tuple[type[BatchEnvRunner], type[NetworkModule]]:
        """Return the class that plays and the class that holds the network."""
        raise NotImplementedError

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        model = dict(self._model_config)
        body = NetworkSettings(
            name=model.get("name", NetworkSettings.name), options=model.get("options", {})
        )
        network = self.settings.network_for(body, self.world_name, self.env_config)
        bf16 = self.settings.bf16
        model_config = {
            **model,
            "name": network.name,
            "options": dict(network.options),
            "bf16": has_fast_bfloat16(self._gpu()) if bf16 is None else bf16,
        }
        return RLModuleSpec(module_class=self.runner_and_module()[1], model_config=model_config)

    @property
    def world_name(self) -> str:
        """The world's name for messages and curves."""
        if isinstance(self.env, str):
            return self.env
        return getattr(self.env, "__name__", str(self.env))

    def make_world(self) -> BatchEnv:
        """Make the world of an env runner. Raises what `make_world` raises, and `ConfigError` for a
        world that isn't a `BatchEnv` or whose spaces differ from the configuration.
        """
        world = self._named_world()
        declared = {
            "observation_space": (self.observation_space, world.single_observation_space),
            "action_space": (self.action_space, world.single_action_space),
        }
        for name, (expected, actual) in declared.items():
            if expected is not None and expected != actual:
                raise ConfigError(
                    f"the configuration's {name} is {expected}, and that of {self.world_name} is"
                    f" {actual}; leave it out, or set the world's options"
                )
        return world

    def _named_world(self) -> BatchEnv:
        options = dict(self.env_config)
        if self.num_envs_per_env_runner is not None:
            options["num_games"] = self.num_envs_per_env_runner
        # Here, because a module that is imported may register the world.
        import_modules(options.pop("imports", ()))
        name = options.pop("name", self.env)
        if isinstance(name, str) and (name in envs.names() or not _registered(name)):
            return make_world({**options, "name": name})
        if name is None:
            raise ConfigError(
                "the configuration names no world; set one: config.environment('battlesnake')"
            )
        if isinstance(name, str):
            world = _registered(name)(options)
        else:
            world = name(**options)
        if not isinstance(world, BatchEnv):
            raise ConfigError(
                f"the environment {self.world_name} is a {type(world).__name__}, and"
                f" {self.settings.algorithm} plays a BatchEnv (envs.api): name one of envs.names(),"
                " or write one (docs/your-own-parts.md)"
            )
        return world


_RLLIBS_FIELDS = frozenset(vars(AlgorithmConfig()))
_TRAINING = frozenset(inspect.signature(AlgorithmConfig.training).parameters)
"""What RLlib's `training` takes."""
_RLLIBS_KEYS = frozenset({*AlgorithmConfig().to_dict(), "multiagent"})
"""What RLlib calls its fields in a dict."""


def _registered(name: str) -> Any:
    """What the user registered with Ray under this name; None if nothing is."""
    from ray.tune.registry import ENV_CREATOR, _global_registry

    if _global_registry.contains(ENV_CREATOR, name):
        return _global_registry.get(ENV_CREATOR, name)
    return None


def _is_open(value: Any) -> bool:
    """Whether a value is still to be found: by Tune, or from other fields."""
    return (
        isinstance(value, Domain)
        or value == AUTO
        or (isinstance(value, dict) and "grid_search" in value)
    )


def _equal(value: Any, other: Any) -> bool:
    return value is other or bool(value == other)
