"""Describes a training run, as typed dataclasses that are read from YAML:
`Experiment.load("battlesnake-ppo")`.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from envs.common.errors import ConfigError, UnknownNameError
from envs.common.parts import modules_named_in
from envs.common.strangers.bounded import MAX_YAML_BYTES, parse_yaml, read_text
from train.settings import ALGORITHMS, AlgorithmSettings, PPOSettings
from train.settings.algorithm import NetworkSettings, Settings
from train.settings.limits import require
from train.settings.scale import Local, Scale
from train.settings.sections import Budget, Checkpoints, EnvSettings, Evaluation, Stop, Tune
from train.typed_values import check_keys, convert, convert_section, field_types

EXPERIMENTS = Path(__file__).parent / "experiments"
_LIST_EXPERIMENTS = {"list the built-in ones": ("train", "--list")}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that describes a training run.

    As plain values it is a mapping of this class's fields, with two keys instead of `settings`:
    `algorithm`, and a section with that name, e.g. `ppo`. Any other key is refused."""

    name: str
    """The experiment's name. The run folder's name begins with it."""
    env: EnvSettings
    budget: Budget
    network: NetworkSettings = field(default_factory=NetworkSettings)
    settings: AlgorithmSettings = field(default_factory=PPOSettings)
    """The settings of the algorithm that trains. Their class says which algorithm it is."""
    init_from: str | None = None
    """A policy bundle, a run or a champion with whose weights the network begins. With None, they
    are random. `procsnake train` also takes another experiment's name, and trains that one first
    (`train.stages`)."""
    seed: int = 0
    """The number from which all random numbers of the run follow, up to four billion."""
    num_env_runners: int = 0
    """The number of processes that play. With 0, the process that learns plays, too, which is
    fastest on few cores.
    """
    num_learners: int = 0
    """The number of processes that learn. With 0, the main process learns. If there are several,
    they share each batch.
    """
    num_gpus_per_learner: int = 0
    """The number of GPUs of each process that learns, and plays where no others do. With 0, it
    learns on the CPU.
    """
    scale: Scale = field(default_factory=Local)
    """The machines for `procsnake launch` and `procsnake train --cluster`. A run on this machine
    alone ignores it.
    """
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    evaluation: Evaluation | None = None
    """How the policy is measured during training. With None, it isn't."""
    stop: Stop | None = None
    """A target that ends the run early. With None, only the budget ends it."""
    tune: Tune = field(default_factory=Tune)
    """What `procsnake tune` searches. A run itself ignores it."""

    def __post_init__(self) -> None:
        # NumPy and RLlib take seeds up to 2³² - 1. The numbers of seeds, processes and evaluations
        # are added to it.
        require(self, "", "seed", 0, 4_000_000_000)
        require(self, "", "num_env_runners", 0)
        require(self, "", "num_learners", 0)
        require(self, "", "num_gpus_per_learner", 0)
        if self.settings.needs_env_runners and self.num_env_runners == 0:
            raise ConfigError(
                f"num_env_runners is 0, but {self.algorithm} plays in processes of its own; set it"
                " to 1 or more"
            )
        league = self.env.options.get("self_play")
        if (
            self.is_recurrent
            and isinstance(league, dict)
            and league.get("past_every", True) is not None
        ):
            raise ConfigError(
                "a policy with a memory (ppo.lstm_units) can't play past selves, which would forget"
                " at each step; name opponents and set env.options.self_play.past_every: null"
            )
        if (
            not self.uses_ray
            and self.num_env_runners + self.num_learners + self.num_gpus_per_learner
        ):
            raise ConfigError(
                "num_env_runners, num_learners and num_gpus_per_learner must be 0 for"
                f" {self.algorithm}, which is a single process without a GPU"
            )
        if self.evaluation and not self.settings.has_policy:
            raise ConfigError(
                f"{self.algorithm} trains no policy that could be measured; leave out the section"
                " evaluation"
            )
        if self.init_from is not None and not self.settings.can_begin_with_weights:
            raise ConfigError(
                f"{self.algorithm} can't begin with the weights of {self.init_from}, because its"
                " network's heads mean something else; ppo, imitation and cloning can. Leave out"
                " init_from"
            )
        # Refuses Q heads for a world whose returns aren't known.
        _ = self.policy_network
        if not self.name or self.name != Path(self.name).name or self.name.startswith("."):
            raise ConfigError(
                f"name is {self.name!r}; it becomes part of a folder's name, so no slashes and no"
                " leading dot"
            )

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that trains."""
        return self.settings.algorithm

    @property
    def modules(self) -> list[str]:
        """The modules with the user's own parts: those in `env.imports`, and those in names like
        my_module:Net.
        """
        named = modules_named_in(
            [self.env.name, self.env.options, self.network.name, self.network.options]
        )
        return list(dict.fromkeys([*self.env.imports, *named]))

    @property
    def uses_ray(self) -> bool:
        """Whether the algorithm needs Ray. Those that don't are one plain process."""
        return self.settings.uses_ray

    @property
    def is_recurrent(self) -> bool:
        """Whether the policy has a memory."""
        return self.settings.is_recurrent

    @property
    def policy_network(self) -> NetworkSettings:
        """The network that torch trains and that is exported: `network`, with Q heads if the
        algorithm needs them.
        """
        return self.settings.network_for(self.network, self.env.name, self.env.options)

    def settings_as(self, kind: type[Settings]) -> Settings:
        """Return the settings, which must be of type `kind`."""
        assert isinstance(self.settings, kind)
        return self.settings

    @classmethod
    def load(cls, name_or_path: str | Path, overrides: Iterable[str] = ()) -> Experiment:
        """Read an experiment of `train/experiments` by name, or any YAML file by path, with
        "dotted.key=value" overrides.

        Raises `UnknownNameError` for names and keys that don't exist, and `ConfigError` for values
        of the wrong type or range and for overrides of another algorithm than the experiment's."""
        return cls._overridden(_read(name_or_path), list(overrides))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Experiment:
        """Make an experiment from plain values. Raises `UnknownNameError` or `ConfigError`.

        Sections of other algorithms are checked and dropped. If `algorithm` is missing, the only
        section names it; without sections it is ppo."""
        kinds = field_types(cls)
        del kinds["settings"]
        check_keys(data, cls, "", [*kinds, "algorithm", *ALGORITHMS])
        data = _with_plane_scales(data)
        values = {
            name: convert(value, kinds[name], name) for name, value in data.items() if name in kinds
        }
        return cls(settings=_settings(data), **values)

    def override(self, overrides: Iterable[str]) -> Experiment:
        """Return the experiment with other values, in the form that `load` takes. Raises what
        `load` raises.
        """
        return self._overridden(self.to_dict(), list(overrides))

    @classmethod
    def _overridden(cls, data: dict[str, Any], overrides: list[str]) -> Experiment:
        experiment = cls.from_dict(_override(data, overrides))
        for override in overrides:
            section = override.partition("=")[0].partition(".")[0]
            if section in ALGORITHMS and section != experiment.algorithm:
                raise ConfigError(
                    f"override {override!r} is for {section}, but the experiment's algorithm is"
                    f" {experiment.algorithm}; leave it out, or also set algorithm={section}"
                )
        return experiment

    def search(self, spaces: Iterable[str]) -> Experiment:
        """Return the experiment with "dotted.key=space" added to `tune.search`. Raises
        `ConfigError` for any other form.
        """
        added = {}
        for text in spaces:
            key, equals, space = text.partition("=")
            if not equals or not key:
                raise ConfigError(
                    f"search {text!r} is not of the form key=space, e.g."
                    " ppo.learning_rate=1e-4..1e-2:log"
                )
            added[key] = space
        return dataclasses.replace(
            self, tune=dataclasses.replace(self.tune, search={**self.tune.search, **added})
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values from which `from_dict` makes an equal experiment, with only its own
        algorithm's section.
        """
        plain: dict[str, Any] = {}
        for name, value in dataclasses.asdict(self).items():
            if name == "settings":
                plain |= {"algorithm": self.algorithm, self.algorithm: value}
            else:
                plain[name] = value
        return plain


def list_experiments() -> list[str]:
    """Return the names of the experiments that come with procsnake, sorted."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.yaml"))


def experiment_text(name_or_path: str | Path) -> str:
    """Return the YAML of an experiment, by name or path. Raises `UnknownNameError` or `ConfigError`
    if there is none.
    """
    path = _path(name_or_path)
    try:
        return read_text(path, MAX_YAML_BYTES)
    except FileNotFoundError as error:
        raise ConfigError(
            f"there is no experiment file {path}.", next_commands=_LIST_EXPERIMENTS
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} can't be read as YAML: {' '.join(str(error).split())}"
        ) from error


def _path(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        return path
    if str(name_or_path) not in list_experiments():
        if os.path.isfile(run := path / "config.yaml"):
            raise ConfigError(
                f"{path} is the folder of a run.",
                next_commands={
                    "to train its experiment again": ("train", "--config", run),
                    "to continue the run": ("train", "--resume", path),
                },
            )
        if os.path.exists(path):
            kind = "a folder" if path.is_dir() else "a file that doesn't end in .yaml"
            raise ConfigError(
                f"{path} is {kind}; an experiment is a .yaml file or one of the built-in ones.",
                next_commands=_LIST_EXPERIMENTS,
            )
        raise UnknownNameError(
            "experiment", str(name_or_path), list_experiments(), hint="Or the path of a .yaml file."
        )
    return EXPERIMENTS / f"{name_or_path}.yaml"


@lru_cache(maxsize=32)
def _parsed(text: str) -> Any:
    """Return the value of a text, which a comparison loads hundreds of times."""
    return parse_yaml(text)


def _read(name_or_path: str | Path) -> dict[str, Any]:
    path = _path(name_or_path)
    text = experiment_text(name_or_path)
    try:
        # A copy, because overrides are written into it.
        data = copy.deepcopy(_parsed(text))
    except ValueError as error:
        raise ConfigError(f"{path} can't be read as YAML: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(
            f"{path} holds {type(data).__name__}; an experiment is a mapping of keys to values"
        )
    # A run's config.yaml is an experiment with a note of what it ran on.
    data.pop("run", None)
    return data


def _with_plane_scales(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return plain values of an experiment, with numbers in place of `scales: planes`.

    The numbers bring each plane of Battlesnake's observation to about 0..1. Raises `ConfigError` if
    the world's observations have no planes."""
    network = _section(data, "network")
    options = _section(network, "options")
    if options.get("scales") != "planes":
        return data
    # Here, because it loads the engine, which most commands can do without.
    from envs.battlesnake.observations import EgocentricPlanes, choose_observation

    world_options = _section(_section(data, "env"), "options")
    num_snakes = world_options.get("num_snakes", 4)
    observation = choose_observation(world_options.get("observation"), num_snakes)
    if not isinstance(observation, EgocentricPlanes):
        raise ConfigError(
            "network.options.scales is 'planes', which is for Battlesnake's egocentric planes; give"
            " one number per plane"
        )
    options = {**options, "scales": observation.plane_scales()}
    return {**data, "network": {**network, "options": options}}


def _section(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a mapping within plain values; an empty one if none is there."""
    section = data.get(key)
    if isinstance(section, Mapping):
        return section
    return {}


def parse_override(override: str) -> tuple[str, Any]:
    """Return the key and the value of an override "dotted.key=value". Raises `ConfigError` for any
    other form.
    """
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(
            f"override {override!r} is not of the form key=value, e.g. ppo.learning_rate=3e-4"
        )
    try:
        return key, parse_yaml(text)
    except ValueError as error:
        raise ConfigError(f"override {override!r}: the value is not YAML ({error})") from error


def _override(data: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    for override in overrides:
        key, value = parse_override(override)
        *parents, last = key.split(".")
        section = data
        for depth, parent in enumerate(parents, 1):
            if section.get(parent) is None:
                section[parent] = {}
            before = section = section[parent]
            if not isinstance(section, dict):
                key = ".".join(parents[:depth])
                raise ConfigError(
                    f"override {override!r}: {key} is {before!r}, a single value, and has no keys."
                    f" To put keys in its place: {key}={{{'.'.join([*parents[depth:], last])}:"
                    f" {override.partition('=')[2]}}}"
                )
        section[last] = value
    return data


def _settings(data: Mapping[str, Any]) -> AlgorithmSettings:
    """The settings of the algorithm that an experiment's plain values name. All sections are
    checked.
    """
    sections = {
        name: convert_section(data[name], kind, name)
        for name, kind in ALGORITHMS.items()
        if name in data
    }
    name = str(data.get("algorithm", next(iter(sections), PPOSettings.algorithm)))
    if name not in ALGORITHMS:
        raise UnknownNameError("algorithm", name, ALGORITHMS)
    if len(sections) > 1 and "algorithm" not in data:
        raise ConfigError(
            f"the experiment has sections for {' and '.join(sections)}, but doesn't say which is to"
            f" train it; add the key algorithm, e.g. algorithm: {name}"
        )
    return sections.get(name) or ALGORITHMS[name]()
