"""What a training run is, as typed dataclasses over YAML: `Experiment.load("battlesnake-ppo")`."""

from __future__ import annotations

import dataclasses
import itertools
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from envs.errors import ConfigError, UnknownNameError
from train.cluster.scale import Local, Scale
from train.schedule import Knots

EXPERIMENTS = Path(__file__).parent / "experiments"


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """Proximal policy optimisation. Names and defaults as CleanRL has them."""

    learning_rate: float | Knots = 2.5e-4
    """Step size of Adam (epsilon 1e-5): a number, or knots [[0, value], [agent steps, value], …] of a line."""
    anneal_lr: bool = False
    """Bring the learning rate to 0 linearly over the run's budget, whatever it is otherwise."""
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
    ent_coef: float | Knots = 0.01
    """Weight of the entropy bonus: a number or knots, as `learning_rate`."""
    max_grad_norm: float = 0.5
    """Largest global norm of a gradient; longer ones are scaled down."""
    target_kl: float | None = None
    """Leave out the remaining epochs of a batch once the approximate KL divergence is above this."""
    kl_coef: float = 0.0
    """First weight of a penalty on KL(policy of the rollout ‖ policy), besides clipping; 0: no penalty."""
    kl_target: float = 0.01
    """KL divergence that the weight of the penalty is doubled and halved for (section 4 of the paper)."""
    norm_reward: bool = False
    """Divide rewards by the running standard deviation of the discounted return, then clip them to ±10."""
    symmetries: bool = False
    """Show each decision a random one of the world's equivalent views (a snake's board mirrored or turned)."""
    lstm_units: int = 0
    """Units of a memory (LSTM) between the network's layers and its heads; 0: none. Such policies can't be exported."""
    bf16: bool | None = None
    """Roll out and learn in bfloat16; None: if the hardware is fast at it. Exported policies are float32 in any case."""
    num_threads: int | None = None
    """Threads of torch where it learns; None: measured now and then (runs then differ in the last digits of sums)."""

    def __post_init__(self) -> None:
        _require_schedule(self, "ppo", "learning_rate", 0.0, 1.0)
        _require_schedule(self, "ppo", "ent_coef", 0.0)
        _require(self, "ppo", "num_steps", 1)
        _require(self, "ppo", "num_minibatches", 1)
        _require(self, "ppo", "num_epochs", 1)
        _require(self, "ppo", "num_threads", 1)
        _require(self, "ppo", "lstm_units", 0)
        if self.lstm_units and self.symmetries:
            raise ConfigError("ppo.symmetries turns each decision's view at random, which a memory can't follow; set one to 0")
        for name in ("gamma", "gae_lambda"):
            _require(self, "ppo", name, 0.0, 1.0)
        for name in ("clip_coef", "vf_coef", "max_grad_norm", "target_kl", "kl_coef", "kl_target"):
            _require(self, "ppo", name, 0.0)


@dataclass(frozen=True, kw_only=True)
class QSettings:
    """What DQN and APEX share: Q-learning from prioritised replay."""

    learning_rate: float | Knots = 5e-4
    """Step size of Adam: a number, or knots [[agent steps, value], …] of a piecewise linear schedule."""
    adam_epsilon: float = 1e-8
    """Epsilon of Adam."""
    num_steps: int = 4
    """Steps of every game in a rollout."""
    gamma: float = 0.99
    """Discount factor, 0..1."""
    n_step: int = 3
    """Rewards that a target sums up before it relies on the network."""
    train_batch_size: int = 256
    """Decisions in a batch; each batch is one step of the optimiser."""
    replay_ratio: float = 8.0
    """How often each decision is learned from, on average: sizes of all batches together per agent step."""
    replay_capacity: int = 200_000
    """Decisions remembered, over all env runners; those of rows that wait for their game's end take room, too."""
    learning_starts: int = 10_000
    """Decisions taken before learning starts, also after a resume: checkpoints don't hold the memory."""
    double_q: bool = True
    """Let the network choose the next action and the target network value it."""
    dueling: bool = True
    """Separate heads for the state's value and the actions' advantages."""
    num_atoms: int = 1
    """Atoms of the distribution of returns that is learned (C51 has 51); 1: its mean alone."""
    v_min: float = -1.0
    """Lowest atom: the least return that can be told apart."""
    v_max: float = 1.0
    """Highest atom."""
    noisy: bool = False
    """Explore by learned noise in the heads' weights, too; then `epsilon` may be 0."""
    sigma0: float = 0.5
    """First size of that noise."""
    priority_alpha: float = 0.6
    """Exponent of the priorities, 0..1; 0: every decision is replayed with equal probability."""
    priority_beta: float | Knots = 0.4
    """Exponent of the weights that make up for it, 0..1: a number or knots, as `learning_rate`."""
    target_update_freq: int = 500
    """Updates between two updates of the target network."""
    tau: float = 1.0
    """How far the target network then goes towards the network, 0..1; 1: it is copied."""
    max_grad_norm: float = 10.0
    """Largest global norm of a gradient; longer ones are scaled down."""
    bf16: bool | None = None
    """Roll out and learn in bfloat16; None: if the hardware is fast at it. Exported policies are float32 in any case."""
    num_threads: int | None = None
    """Threads of torch where it learns; None: measured now and then (runs then differ in the last digits of sums)."""

    section = ""

    def __post_init__(self) -> None:
        _require_schedule(self, self.section, "learning_rate", 0.0, 1.0)
        _require_schedule(self, self.section, "priority_beta", 0.0, 1.0)
        counts = ("num_steps", "n_step", "train_batch_size", "replay_capacity", "learning_starts", "num_atoms")
        for name in (*counts, "target_update_freq", "num_threads"):
            _require(self, self.section, name, 1)
        for name in ("gamma", "priority_alpha", "tau"):
            _require(self, self.section, name, 0.0, 1.0)
        for name in ("adam_epsilon", "replay_ratio", "sigma0", "max_grad_norm"):
            _require(self, self.section, name, 0.0)
        if self.v_min >= self.v_max:
            raise ConfigError(f"{self.section}.v_min is {self.v_min:g}; it must be less than v_max, {self.v_max:g}")


@dataclass(frozen=True, kw_only=True)
class DQNSettings(QSettings):
    """Deep Q-learning: rollouts and updates take turns."""

    epsilon: float | Knots = field(default_factory=lambda: [[0, 1.0], [50_000, 0.05]])
    """Probability of a random action: a number, or knots [[agent steps, value], …]."""

    section = "dqn"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_schedule(self, self.section, "epsilon", 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class APEXSettings(QSettings):
    """Distributed prioritised replay: env runners, replay shards and learner each go their own pace."""

    epsilon_base: float = 0.4
    """Game i of all N of all env runners explores with probability epsilon_base^(1 + epsilon_exponent · i / (N - 1))."""
    epsilon_exponent: float = 7.0
    """See `epsilon_base`."""
    num_replay_shards: int = 1
    """Processes that hold the memory; each has its share of the env runners."""
    batches_per_request: int = 4
    """Batches that the learner fetches from a shard at once."""
    weight_push_freq: int = 4
    """Updates between two publications of the network to the env runners."""

    section = "apex"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self, self.section, "epsilon_base", 0.0, 1.0)
        _require(self, self.section, "epsilon_exponent", 0.0)
        for name in ("num_replay_shards", "batches_per_request", "weight_push_freq"):
            _require(self, self.section, name, 1)


@dataclass(frozen=True, kw_only=True)
class MXNetDQNSettings:
    """The readable DQN in MXNet. Names and defaults as the SageMaker starter pack has them, where it has them."""

    buffer_size: int = 5000
    """Decisions remembered."""
    update_every: int = 20
    """Decisions for each batch that is learned from."""
    batch_size: int = 64
    """Decisions in a batch."""
    lr_start: float = 5e-4
    """First step size of Adam."""
    lr_step: int = 500_000
    """Updates between two changes of the step size."""
    lr_factor: float = 0.5
    """What the step size is then multiplied by."""
    gamma: float = 0.95
    """Discount factor, 0..1."""
    tau: float = 1e-3
    """How far the target network goes towards the network after each update, 0..1 (soft)."""
    target_update_every: int = 0
    """0: soft, by `tau`; otherwise the target network is copied after so many updates (hard)."""
    eps_start: float = 1.0
    """First probability of a random action."""
    eps_end: float = 0.01
    """Least probability of a random action."""
    eps_decay: float = 0.995
    """What the probability is multiplied by after each game."""
    warmup: int = 0
    """Decisions taken before learning starts; a batch's size at least."""
    mask_actions: bool = True
    """Never take actions that the world says are no use (certain death), nor expect them to be taken."""
    num_steps: int = 100
    """Steps of every game between two rows of progress.csv."""

    def __post_init__(self) -> None:
        for name in ("buffer_size", "update_every", "batch_size", "lr_step", "num_steps"):
            _require(self, "mxnet_dqn", name, 1)
        for name in ("lr_start", "lr_factor", "gamma", "tau", "eps_start", "eps_end", "eps_decay"):
            _require(self, "mxnet_dqn", name, 0.0, 1.0)
        for name in ("target_update_every", "warmup"):
            _require(self, "mxnet_dqn", name, 0)


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
    best_metric: str | None = None
    """A column of progress.csv, e.g. win_rate: the checkpoint with its highest value is kept, too, and becomes the policy."""

    def __post_init__(self) -> None:
        _require(self, "checkpoints", "every_minutes", 0.0)
        _require(self, "checkpoints", "keep", 1)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Games that measure the policy during training (`train.evaluation`). They train nothing and use up no budget."""

    every_minutes: float | None = None
    """Minutes of training between two evaluations."""
    every_iterations: int | None = None
    """Iterations between two evaluations; whichever comes first. There is one more when the budget is used up."""
    games: int = 100
    """Games against each group of opponents; in other worlds than Battlesnake: episodes."""
    opponents: list[list[str]] = field(default_factory=lambda: [["random"], ["greedy"]])
    """Groups of agents as `agents.make` knows them; the policy meets each group in games of its own. For Battlesnake."""
    env_options: dict[str, Any] = field(default_factory=dict)
    """Options of the world that differ from those of training, e.g. levels that it never sees. For other worlds."""

    def __post_init__(self) -> None:
        _require(self, "evaluation", "every_minutes", 0.0)
        _require(self, "evaluation", "every_iterations", 1)
        _require(self, "evaluation", "games", 1)
        if self.every_minutes is None and self.every_iterations is None:
            raise ConfigError("evaluation sets neither every_minutes nor every_iterations, so it never takes place; set one")
        if not self.opponents or not all(isinstance(group, list) and group for group in self.opponents):
            raise ConfigError(f"evaluation.opponents is {self.opponents!r}; it must be lists of names as [[random], [flood]]")


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A target that ends the run before its budget does."""

    metric: str
    """A column of progress.csv, e.g. episode_return_mean or win_rate."""
    at_least: float
    """The run is finished with the first iteration whose metric is this high."""


@dataclass(frozen=True, kw_only=True)
class Tune:
    """A search for better values of the experiment's keys: what `procsnake tune` does (`train.tune`)."""

    search: dict[str, Any] = field(default_factory=dict)
    """From key to what is tried: "low..high", "low..high:log", "a,b,c" or a list. A range of whole numbers stays whole."""
    metric: str = "episode_return_mean"
    """A column of progress.csv; its last value says how good a trial is."""
    mode: Literal["max", "min"] = "max"
    """Whether high or low values of the metric are good."""
    scheduler: Literal["random", "asha", "pbt"] = "random"
    """random: every trial uses up its budget; asha: the worse two thirds are stopped at 11 and 33 % of it (Li et al. 2020);
    pbt: each 20 % the worst quarter copies the best and changes its values (Jaderberg et al. 2017)."""
    trials: int = 8
    """How many."""
    concurrent: int = 1
    """Trials that run at the same time; each keeps as many cores busy as a run of its own."""

    def __post_init__(self) -> None:
        _require(self, "tune", "trials", 1)
        _require(self, "tune", "concurrent", 1)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A training run, all of it. Any key that isn't here is refused."""

    name: str
    """Also the beginning of the run folder's name."""
    env: EnvSettings
    budget: Budget
    algorithm: Literal["ppo", "dqn", "apex", "mxnet_dqn"] = "ppo"
    """The trainer."""
    network: NetworkSettings = field(default_factory=NetworkSettings)
    ppo: PPOSettings = field(default_factory=PPOSettings)
    dqn: DQNSettings = field(default_factory=DQNSettings)
    apex: APEXSettings = field(default_factory=APEXSettings)
    mxnet_dqn: MXNetDQNSettings = field(default_factory=MXNetDQNSettings)
    seed: int = 0
    """All random numbers of the run follow from it."""
    num_env_runners: int = 0
    """Processes that play; 0: the process that learns plays, too, which is fastest on few cores."""
    num_learners: int = 0
    """Processes that learn; 0: in the main process. More than one share each batch."""
    num_gpus_per_learner: int = 0
    """GPUs of each process that learns; 0: it learns on the CPU."""
    scale: Scale = field(default_factory=Local)
    """The machines that `procsnake launch` and `procsnake train --cluster` are to use; a run on this one takes no notice."""
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    evaluation: Evaluation | None = None
    """None: the policy isn't measured during training."""
    stop: Stop | None = None
    """None: the run ends by its budget alone."""
    tune: Tune = field(default_factory=Tune)
    """For `procsnake tune`; a run itself takes no notice of it."""

    def __post_init__(self) -> None:
        _require(self, "", "seed", 0)
        _require(self, "", "num_env_runners", 0)
        _require(self, "", "num_learners", 0)
        _require(self, "", "num_gpus_per_learner", 0)
        if self.algorithm == "apex" and self.num_env_runners == 0:
            raise ConfigError("num_env_runners is 0, but apex plays in processes of its own; set it to 1 or more")
        if self.is_recurrent and self.evaluation:
            raise ConfigError(
                "a policy with a memory (ppo.lstm_units) can't be evaluated outside training; set evaluation: null"
            )
        if not self.uses_ray and self.num_env_runners + self.num_learners:
            raise ConfigError(f"num_env_runners and num_learners must be 0 for {self.algorithm}, which is a single process")
        if not self.name or self.name != Path(self.name).name or self.name.startswith("."):
            raise ConfigError(f"name is {self.name!r}; it becomes part of a folder's name, so no slashes and no leading dot")

    @property
    def settings(self) -> PPOSettings | DQNSettings | APEXSettings | MXNetDQNSettings:
        """Those of the algorithm."""
        return getattr(self, self.algorithm)

    @property
    def uses_ray(self) -> bool:
        """False for the algorithm that is one plain process."""
        return self.algorithm != "mxnet_dqn"

    @property
    def is_recurrent(self) -> bool:
        """True if the policy has a memory."""
        return isinstance(self.settings, PPOSettings) and self.settings.lstm_units > 0

    @property
    def policy_network(self) -> NetworkSettings:
        """What is exported, and what torch trains: `network`, with heads for Q values where the algorithm needs them."""
        settings = self.settings
        if isinstance(settings, PPOSettings):
            if not self.is_recurrent:
                return self.network
            body = {"body": self.network.name, "body_options": self.network.options}
            return NetworkSettings(name="recurrent", options={**body, "units": settings.lstm_units})
        if isinstance(settings, MXNetDQNSettings):
            return NetworkSettings(name="starter-pack", options={"kind": self.network.name, **self.network.options})
        heads = {name: getattr(settings, name) for name in ("dueling", "num_atoms", "v_min", "v_max", "noisy", "sigma0")}
        options = {"body": self.network.name, "body_options": self.network.options, **heads}
        return NetworkSettings(name="q-network", options=options)

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

    def override(self, overrides: Iterable[str]) -> Experiment:
        """With other values, given as to `load`; raises like it."""
        return self.from_dict(_override(self.to_dict(), overrides))

    def search(self, spaces: Iterable[str]) -> Experiment:
        """With "dotted.key=space" added to `tune.search`. Raises `ConfigError` for what isn't of that form."""
        added = {}
        for text in spaces:
            key, equals, space = text.partition("=")
            if not equals or not key:
                raise ConfigError(f"search {text!r} is not of the form key=space, e.g. ppo.learning_rate=1e-4..1e-2:log")
            added[key] = space
        return dataclasses.replace(self, tune=dataclasses.replace(self.tune, search={**self.tune.search, **added}))

    def to_dict(self) -> dict[str, Any]:
        """Plain values from which `from_dict` makes an equal experiment."""
        return dataclasses.asdict(self)


def list_experiments() -> list[str]:
    """Names of the experiments that ship with procsnake, sorted."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.yaml"))


def experiment_text(name_or_path: str | Path) -> str:
    """The YAML of an experiment, by name or path. Raises `UnknownNameError` or `ConfigError` if there is none."""
    path = _path(name_or_path)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"there is no experiment file {path}. List the built-in ones: procsnake train --list") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read as YAML: {' '.join(str(error).split())}") from error


def _path(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml"):
        return path
    if str(name_or_path) not in list_experiments():
        raise UnknownNameError("experiment", str(name_or_path), list_experiments(), hint="Or the path of a .yaml file.")
    return EXPERIMENTS / f"{name_or_path}.yaml"


def _read(name_or_path: str | Path) -> dict[str, Any]:
    path, text = _path(name_or_path), experiment_text(name_or_path)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
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
            if section.get(parent) is None:
                section[parent] = {}
            section = section[parent]
            if not isinstance(section, dict):
                raise ConfigError(f"override {override!r}: {'.'.join(parents[:depth])} is a single value and has no keys")
        section[last] = value
    return data


def _convert(value: Any, kind: Any, key: str) -> Any:
    """`value` as type `kind`. YAML 1.1 reads 3e-4 as text, so text that is a number is taken where a number is due."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None and types.NoneType in arguments:
            return None
        if all(map(dataclasses.is_dataclass, arguments)):
            return _convert_section(value, _kind_of(value, arguments, key), key)
        # A list is meant as the kind that is one; all else as the first kind.
        kind = next((k for k in arguments if isinstance(value, list) and typing.get_origin(k) is list), arguments[0])
        return _convert(value, kind, key)
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
    if wanted is list and isinstance(value, list) and arguments:
        return [_convert(item, arguments[0], f"{key}[{k}]") for k, item in enumerate(value)]
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise ConfigError(f"{key} is {value!r}, but it must be of type {getattr(wanted, '__name__', wanted)}")
    return value


def _number(value: Any) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def _kind_of(value: Any, sections: Iterable[Any], key: str) -> Any:
    """The section that the key `kind` of `value` names."""
    by_name = {section.kind: section for section in sections}
    if not isinstance(value, Mapping) or "kind" not in value:
        raise ConfigError(f"{key} is {value!r}; it must be a mapping with the key kind, one of {', '.join(sorted(by_name))}")
    if value["kind"] not in by_name:
        raise UnknownNameError(f"{key}.kind", str(value["kind"]), by_name)
    return by_name[value["kind"]]


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


def _require_schedule(section: Any, key: str, name: str, least: float, most: float = float("inf")) -> None:
    value, full = getattr(section, name), f"{key}.{name}"
    knots = value if isinstance(value, list) else [[0.0, value]]
    if not knots or any(len(knot) != 2 for knot in knots) or (isinstance(value, list) and (len(knots) < 2 or knots[0][0])):
        raise ConfigError(f"{full} is {value!r}; a schedule is two or more knots [agent steps, value], the first at 0 steps")
    steps = [knot[0] for knot in knots]
    if any(later <= earlier for earlier, later in itertools.pairwise(steps)):
        raise ConfigError(f"{full}: the steps of its knots are {steps}; they must increase")
    if not all(least <= knot[1] <= most for knot in knots):
        raise ConfigError(f"{full} is {value!r}; its values must be {_limits(least, most)}")


def _require(section: Any, key: str, name: str, least: float, most: float = float("inf")) -> None:
    value = getattr(section, name)
    if value is not None and not least <= value <= most:
        full = f"{key}.{name}" if key else name
        raise ConfigError(f"{full} is {value!r}; it must be {_limits(least, most)}")


def _limits(least: float, most: float) -> str:
    return f"at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
