"""What a training run is, as typed dataclasses over YAML: `Experiment.load("battlesnake-ppo")`."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from envs.errors import ConfigError, UnknownNameError

EXPERIMENTS = Path(__file__).parent / "experiments"


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """Proximal policy optimisation. Names and defaults as CleanRL has them."""

    learning_rate: float = 2.5e-4
    """Step size of Adam (epsilon 1e-5)."""
    anneal_lr: bool = False
    """Bring the learning rate to 0 linearly over the run's budget."""
    num_steps: int = 128
    """Steps of every game between two updates."""
    gamma: float = 0.99
    """Discount factor, 0..1."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation, 0..1."""
    num_minibatches: int = 4
    """Parts that each epoch over the batch is split into; each is one step of the optimiser."""
    num_epochs: int = 4
    """Passes over each batch."""
    norm_adv: bool = True
    """Bring the advantages of each minibatch to mean 0 and standard deviation 1."""
    clip_coef: float = 0.2
    """How far the policy ratio may move from 1 before its gradient is cut off."""
    clip_vloss: bool = False
    """Also clip the value loss, with the same coefficient."""
    vf_coef: float = 0.5
    """Weight of the value loss, which is half the mean squared error."""
    ent_coef: float = 0.01
    """Weight of the entropy bonus."""
    max_grad_norm: float = 0.5
    """Largest global norm of a gradient; longer ones are scaled down."""
    target_kl: float | None = None
    """Leave out the remaining epochs of a batch once the approximate KL divergence is above this."""
    bf16: bool | None = None
    """Roll out and learn in bfloat16; None: if the hardware is fast at it. Exported policies are float32 in any case."""
    num_threads: int | None = None
    """Threads of torch where it learns; None: measured now and then (runs then differ in the last digits of sums)."""

    def __post_init__(self) -> None:
        _require(self, "ppo", "learning_rate", 0.0, 1.0)
        _require(self, "ppo", "num_steps", 1)
        _require(self, "ppo", "num_minibatches", 1)
        _require(self, "ppo", "num_epochs", 1)
        _require(self, "ppo", "num_threads", 1)
        for name in ("gamma", "gae_lambda"):
            _require(self, "ppo", name, 0.0, 1.0)
        for name in ("clip_coef", "vf_coef", "ent_coef", "max_grad_norm", "target_kl"):
            _require(self, "ppo", name, 0.0)


@dataclass(frozen=True, kw_only=True)
class EnvSettings:
    """The world to train in."""

    name: str
    """As `envs.make` knows it."""
    options: dict[str, Any] = field(default_factory=dict)
    """The world's own options; `num_games` is for each env runner."""
    imports: list[str] = field(default_factory=list)
    """Python modules to import first, in every process: those that register worlds of your own."""


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The network to train."""

    name: str = "mlp"
    """As `agents.networks.build` knows it."""
    options: dict[str, Any] = field(default_factory=dict)
    """The network's own options."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When a run ends: at whichever limit comes first."""

    total_agent_steps: int | None = None
    """Decisions taken, over all rows."""
    max_minutes: float | None = None
    """Minutes of training, all sessions of a resumed run together."""

    def __post_init__(self) -> None:
        _require(self, "budget", "total_agent_steps", 1)
        _require(self, "budget", "max_minutes", 0.0)
        if self.total_agent_steps is None and self.max_minutes is None:
            raise ConfigError("budget sets neither total_agent_steps nor max_minutes, so the run would never end; set one")


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """How often the run is saved."""

    every_minutes: float = 1.0
    """Minutes between two checkpoints; there is one more at the end of each session."""
    keep: int = 3
    """How many of the newest are kept."""

    def __post_init__(self) -> None:
        _require(self, "checkpoints", "every_minutes", 0.0)
        _require(self, "checkpoints", "keep", 1)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A training run, all of it. Any key that isn't here is refused."""

    name: str
    """Also the beginning of the run folder's name."""
    env: EnvSettings
    budget: Budget
    algorithm: Literal["ppo"] = "ppo"
    """The trainer."""
    network: NetworkSettings = field(default_factory=NetworkSettings)
    ppo: PPOSettings = field(default_factory=PPOSettings)
    seed: int = 0
    """All random numbers of the run follow from it."""
    num_env_runners: int = 0
    """Processes that play; 0: the process that learns plays, too, which is fastest on few cores."""
    checkpoints: Checkpoints = field(default_factory=Checkpoints)

    def __post_init__(self) -> None:
        _require(self, "", "seed", 0)
        _require(self, "", "num_env_runners", 0)
        if not self.name or self.name != Path(self.name).name or self.name.startswith("."):
            raise ConfigError(f"name is {self.name!r}; it becomes part of a folder's name, so no slashes and no leading dot")

    @classmethod
    def load(cls, name_or_path: str | Path, overrides: Iterable[str] = ()) -> Experiment:
        """Read an experiment of `train/experiments` by name, or any YAML file by path, with "dotted.key=value" overrides.

        Raises `UnknownNameError` for names and keys that don't exist, `ConfigError` for values of the wrong type or range.
        """
        return cls.from_dict(_override(_read(name_or_path), overrides))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Experiment:
        """Build from plain values; raises like `load`."""
        return _convert(data, cls, "")

    def to_dict(self) -> dict[str, Any]:
        """Plain values from which `from_dict` makes an equal experiment."""
        return dataclasses.asdict(self)


def list_experiments() -> list[str]:
    """Names of the experiments that ship with procsnake, sorted."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.yaml"))


def _read(name_or_path: str | Path) -> dict[str, Any]:
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        if str(name_or_path) not in list_experiments():
            raise UnknownNameError("experiment", str(name_or_path), list_experiments(), hint="Or the path of a .yaml file.")
        path = EXPERIMENTS / f"{name_or_path}.yaml"
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no experiment file {path}. List the built-in ones: procsnake train --list") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} can't be read as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds {type(data).__name__}; an experiment is a mapping of keys to values")
    # A run's config.yaml is an experiment with a note of what it ran on.
    data.pop("run", None)
    return data


def _override(data: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"override {override!r} is not of the form key=value, e.g. ppo.learning_rate=3e-4")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"override {override!r}: the value is not YAML ({' '.join(str(error).split())})") from error
        *parents, last = key.split(".")
        section = data
        for depth, parent in enumerate(parents, 1):
            section = section.setdefault(parent, {})
            if not isinstance(section, dict):
                raise ConfigError(f"override {override!r}: {'.'.join(parents[:depth])} is a single value and has no keys")
        section[last] = value
    return data


def _convert(value: Any, kind: Any, key: str) -> Any:
    """`value` as type `kind`. YAML 1.1 reads 3e-4 as text, so text that is a number is taken where a number is due."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _convert(value, arguments[0], key)
    if origin is Literal:
        if value not in arguments:
            raise UnknownNameError(key, str(value), arguments)
        return value
    if dataclasses.is_dataclass(kind):
        return _convert_section(value, kind, key)
    wanted = origin or kind
    if wanted is float and isinstance(value, int | str) and not isinstance(value, bool):
        value = _number(value)
    if wanted is int and isinstance(value, float | str):
        number = _number(value)
        value = int(number) if isinstance(number, float) and number.is_integer() else value
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise ConfigError(f"{key} is {value!r}, but it must be of type {getattr(wanted, '__name__', wanted)}")
    return value


def _number(value: Any) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def _convert_section(value: Any, kind: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key or 'the experiment'} is {value!r}, but it must be a mapping of keys to values")
    hints = typing.get_type_hints(kind)
    prefix = f"{key}." if key else ""
    for name in value:
        if name not in hints:
            raise UnknownNameError("key", f"{prefix}{name}", [f"{prefix}{known}" for known in hints])
    for f in dataclasses.fields(kind):
        if f.name not in value and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            raise ConfigError(f"the key {prefix}{f.name} is missing")
    return kind(**{name: _convert(item, hints[name], f"{prefix}{name}") for name, item in value.items()})


def _require(section: Any, key: str, name: str, least: float, most: float = float("inf")) -> None:
    value = getattr(section, name)
    if value is not None and not least <= value <= most:
        full = f"{key}.{name}" if key else name
        limits = f"at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
        raise ConfigError(f"{full} is {value!r}; it must be {limits}")
