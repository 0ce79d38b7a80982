"""The algorithms: for each a dataclass of its settings, which also registers its name and its
trainer.

Each field has a docstring. Values are checked when the settings are made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar, TypeVar

from envs.common.errors import ConfigError, UnknownNameError
from train.settings.limits import require, require_schedule
from train.settings.schedule import Knots

_LOGGER = logging.getLogger(__name__)

ALGORITHMS: dict[str, type[AlgorithmSettings]] = {}
"""The settings' classes, by the name of their algorithm."""
OPTIMIZERS = ("adam", "muon")


@dataclass(frozen=True, kw_only=True)
class AlgorithmSettings:
    """The settings of one algorithm. An experiment has them as a section with the algorithm's name.

    `registered` sets the class variables.
    """

    algorithm: ClassVar[str] = ""
    """The algorithm's name."""
    trainer: ClassVar[str] = ""
    """The class that trains by these settings, as "module:class" (`train.algorithms`)."""
    uses_ray: ClassVar[bool] = True
    """Whether the trainer needs Ray. One that doesn't is a single plain process."""
    plays_on_cluster: ClassVar[bool] = False
    """Whether a trainer that needs no Ray can have its games played on a cluster
    (`play_on_cluster`).
    """
    has_policy: ClassVar[bool] = True
    """Whether it trains a network, which is measured by games and becomes a policy bundle. One that
    doesn't measures itself, works in the run's folder (`work_in`), and writes its result there
    (`export`)."""


_Settings = TypeVar("_Settings", bound=AlgorithmSettings)


def registered(
    name: str,
    *,
    trainer: str,
    uses_ray: bool = True,
    plays_on_cluster: bool = False,
    has_policy: bool = True,
) -> Callable[[type[_Settings]], type[_Settings]]:
    """Return a decorator that makes a dataclass the settings of the algorithm `name`.

    `trainer` is "module:class" of a `train.rllib.batched_config.BatchedConfig` or, without Ray, of
    the algorithm itself."""

    def register(settings: type[_Settings]) -> type[_Settings]:
        settings.algorithm = name
        settings.trainer = trainer
        settings.uses_ray = uses_ray
        settings.plays_on_cluster = plays_on_cluster
        settings.has_policy = has_policy
        ALGORITHMS[name] = settings
        return settings

    return register


@registered("ppo", trainer="train.ppo:PPOConfig")
@dataclass(frozen=True, kw_only=True)
class PPOSettings(AlgorithmSettings):
    """Proximal policy optimisation. Names and defaults as CleanRL has them."""

    learning_rate: float | Knots = 2.5e-4
    """Step size of the optimiser: a number, or knots [[0, value], [agent steps, value], …] of a
    line.
    """
    optimizer: str = "adam"
    """"adam" (epsilon 1e-5), or "muon" for the weights of hidden layers and Adam for all others
    (`train.compute.muon`).
    """
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
    """Largest global norm of a gradient; longer ones are scaled down. 0: no limit. With muon, the
    gradient of what Muon steps and that of what Adam steps are limited each by itself."""
    target_kl: float | None = None
    """Leave out the remaining epochs of a batch once the approximate KL divergence is above
    this.
    """
    kl_coef: float = 0.0
    """First weight of a penalty on KL(policy of the rollout ‖ policy), besides clipping; 0: no
    penalty.
    """
    kl_target: float = 0.01
    """KL divergence that the weight of the penalty is doubled and halved for (section 4 of the
    paper).
    """
    norm_reward: bool = False
    """Divide rewards by the running standard deviation of the discounted return, then clip them to
    ±10.
    """
    symmetries: bool = False
    """Show each decision a random one of the world's equivalent views (a snake's board mirrored or
    turned).
    """
    lstm_units: int = 0
    """Units of a memory (LSTM) between the network's layers and its heads; 0: none. No server plays
    such policies.
    """
    bf16: bool | None = None
    """Roll out and learn in bfloat16; None: if the hardware is fast at it. Exported policies are
    float32 in any case.
    """
    num_threads: int | None = None
    """Threads of torch where it learns; None: measured now and then (runs then differ in the last
    digits of sums).
    """
    concurrency: bool = False
    """Play the next rollout while learning from the last one: each is played with weights one
    update older (Huang et al. 2023, arXiv 2310.00036) and clipped around the newest (Hilton et al.
    2021, arXiv 2110.00641). Where env runners or learners have processes of their own, it has no
    effect. With `num_threads` None, playing and learning have half of the cores each."""

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise UnknownNameError(f"{self.algorithm}.optimizer", str(self.optimizer), OPTIMIZERS)
        require_schedule(self, self.algorithm, "learning_rate", 1.0)
        require_schedule(self, self.algorithm, "ent_coef")
        for name in ("num_steps", "num_minibatches", "num_epochs", "num_threads"):
            require(self, self.algorithm, name, 1)
        if self.lstm_units and self.symmetries:
            raise ConfigError(
                f"{self.algorithm}.symmetries turns each decision's view at random, which a memory"
                " can't follow (lstm_units); set one to 0"
            )
        for name in ("gamma", "gae_lambda"):
            require(self, self.algorithm, name, 0.0, 1.0)
        for name in (
            "lstm_units",
            "clip_coef",
            "vf_coef",
            "max_grad_norm",
            "target_kl",
            "kl_coef",
            "kl_target",
        ):
            require(self, self.algorithm, name, 0.0)

    def fragments_per_update(self, num_env_runners: int) -> int:
        """Return how many fragments each update learns from. Without env runners the main process
        plays.
        """
        return max(1, num_env_runners)


@registered("appo", trainer="train.appo:APPOConfig")
@dataclass(frozen=True, kw_only=True)
class APPOSettings(PPOSettings):
    """Asynchronous PPO: env runners play on while the learner learns, and V-trace corrects for
    their older weights.
    """

    max_lag: int = 8
    """About how many updates, at most, lie between the weights that played a fragment and those
    that learn from it. Env runners wait if there would be more."""
    fragments_per_batch: int | None = None
    """Fragments in a batch. With None, so many that every env runner can have two requests: 2 ·
    num_env_runners / max_lag.
    """
    rho_clip: float = 1.0
    """Largest ratio of new to old probability by which a decision counts (the paper's ρ̄), above
    0.
    """
    c_clip: float = 1.0
    """Largest ratio by which what comes after a decision counts for it (the paper's c̄)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.algorithm, "max_lag", 1)
        require(self, self.algorithm, "fragments_per_batch", 1)
        require(self, self.algorithm, "c_clip", 0.0)
        if not self.rho_clip > 0:
            raise ConfigError(
                f"{self.algorithm}.rho_clip is {self.rho_clip!r}, by which no decision counts; the"
                " paper has 1"
            )
        if self.lstm_units:
            raise ConfigError(
                f"{self.algorithm} knows no memory (lstm_units is {self.lstm_units}); ppo does:"
                " algorithm=ppo"
            )
        if self.concurrency:
            raise ConfigError(
                f"{self.algorithm}.concurrency is true, but with {self.algorithm} env runners play"
                " on anyway while the learner learns; leave it out, and set num_env_runners to 1"
                " or more"
            )

    def fragments_per_update(self, num_env_runners: int) -> int:
        return self.fragments_per_batch or max(1, -(-2 * num_env_runners // self.max_lag))


@dataclass(frozen=True, kw_only=True)
class QSettings(AlgorithmSettings):
    """What DQN and APEX share: Q-learning from prioritised replay."""

    learning_rate: float | Knots = 5e-4
    """Step size of Adam: a number, or knots [[agent steps, value], …] of a piecewise linear
    schedule.
    """
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
    """How often each decision is learned from, on average: sizes of all batches together per agent
    step.
    """
    replay_capacity: int = 200_000
    """Decisions remembered, over all env runners; those of rows that wait for their game's end take
    room, too.
    """
    learning_starts: int = 10_000
    """Decisions taken before learning starts, also after a resume: checkpoints don't hold the
    memory.
    """
    double_q: bool = True
    """Let the network choose the next action and the target network value it."""
    dueling: bool = True
    """Separate heads for the state's value and the actions' advantages."""
    num_atoms: int = 1
    """Atoms of the distribution of returns that is learned (C51 has 51); 1: its mean alone."""
    v_min: float | None = None
    """Lowest atom: the least return that can be told apart. None: a quarter of `v_max` below 0."""
    v_max: float | None = None
    """Highest atom. None: the highest return that the game can pay, which is known for
    Procgen's.
    """
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
    """Largest global norm of a gradient; longer ones are scaled down. 0: no limit."""
    bf16: bool | None = None
    """Roll out and learn in bfloat16; None: if the hardware is fast at it. Exported policies are
    float32 in any case.
    """
    num_threads: int | None = None
    """Threads of torch where it learns; None: measured now and then (runs then differ in the last
    digits of sums).
    """

    def __post_init__(self) -> None:
        require_schedule(self, self.algorithm, "learning_rate", 1.0)
        require_schedule(self, self.algorithm, "priority_beta", 1.0)
        counts = (
            "num_steps",
            "n_step",
            "train_batch_size",
            "replay_capacity",
            "learning_starts",
            "num_atoms",
        )
        for name in (*counts, "target_update_freq", "num_threads"):
            require(self, self.algorithm, name, 1)
        for name in ("gamma", "priority_alpha", "tau"):
            require(self, self.algorithm, name, 0.0, 1.0)
        for name in ("adam_epsilon", "replay_ratio", "sigma0", "max_grad_norm"):
            require(self, self.algorithm, name, 0.0)
        if self.v_min is not None and self.v_max is not None and self.v_min >= self.v_max:
            raise ConfigError(
                f"{self.algorithm}.v_min is {self.v_min:g}; it must be less than v_max,"
                f" {self.v_max:g}"
            )


@registered("dqn", trainer="train.dqn:DQNConfig")
@dataclass(frozen=True, kw_only=True)
class DQNSettings(QSettings):
    """Deep Q-learning: rollouts and updates take turns."""

    epsilon: float | Knots = field(default_factory=lambda: [[0, 1.0], [50_000, 0.05]])
    """Probability of a random action: a number, or knots [[agent steps, value], …]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_schedule(self, self.algorithm, "epsilon", 1.0)


@registered("apex", trainer="train.apex:APEXConfig")
@dataclass(frozen=True, kw_only=True)
class APEXSettings(QSettings):
    """Distributed prioritised replay: env runners, replay shards and learner each go their own
    pace.
    """

    epsilon_base: float = 0.4
    """Game i of all N of all env runners explores with probability epsilon_base^(1 +
    epsilon_exponent · i / (N - 1)).
    """
    epsilon_exponent: float = 7.0
    """See `epsilon_base`."""
    num_replay_shards: int = 1
    """Processes that hold the memory; each has its share of the env runners. There are at most as
    many as env runners.
    """
    batches_per_request: int = 4
    """Batches that the learner fetches from a shard at once."""
    weight_push_freq: int = 4
    """Updates between two publications of the network to the env runners."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.algorithm, "epsilon_base", 0.0, 1.0)
        require(self, self.algorithm, "epsilon_exponent", 0.0)
        for name in ("num_replay_shards", "batches_per_request", "weight_push_freq"):
            require(self, self.algorithm, name, 1)


@registered("mxnet_dqn", trainer="train.mxnet_dqn:MXNetDQN", uses_ray=False)
@dataclass(frozen=True, kw_only=True)
class MXNetDQNSettings(AlgorithmSettings):
    """The readable DQN in MXNet. Names and defaults as the SageMaker starter pack has them, where
    it has them.
    """

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
    """Never take actions that the world says are no use (certain death), nor expect them to be
    taken.
    """
    num_steps: int = 100
    """Steps of every game between two rows of progress.csv."""

    def __post_init__(self) -> None:
        for name in ("buffer_size", "update_every", "batch_size", "lr_step", "num_steps"):
            require(self, self.algorithm, name, 1)
        for name in ("lr_start", "lr_factor", "gamma", "tau", "eps_start", "eps_end", "eps_decay"):
            require(self, self.algorithm, name, 0.0, 1.0)
        for name in ("target_update_every", "warmup"):
            require(self, self.algorithm, name, 0)


@dataclass(frozen=True, kw_only=True)
class DemonstrationSettings(AlgorithmSettings):
    """What imitation of a teacher and the cloning of recorded snakes share: learning from
    demonstrations.
    """

    learning_rate: float = 1e-3
    """Step size of Adam at the beginning."""
    anneal_lr: bool = True
    """Let the step size fall to 0 at the end of the budget."""
    train_batch_size: int = 512
    """Lessons in a batch."""
    gamma: float = 0.995
    """Discount factor of the returns that the value head learns, 0..1."""
    vf_coef: float = 0.5
    """Weight of the value loss beside that of the moves."""
    symmetries: bool = True
    """Show each batch a random one of the world's equivalent views (a snake's board mirrored or
    turned).
    """
    bf16: bool | None = None
    """Learn in bfloat16; None: if the hardware is fast at it."""
    num_threads: int | None = None
    """Threads of torch, and of the teacher if there is one; None: all, and torch takes what turns
    out fastest.
    """

    def __post_init__(self) -> None:
        for name in ("train_batch_size", "num_threads"):
            require(self, self.algorithm, name, 1)
        for name in ("learning_rate", "gamma"):
            require(self, self.algorithm, name, 0.0, 1.0)
        require(self, self.algorithm, "vf_coef", 0.0)


@registered("imitation", trainer="train.imitation:Imitation", uses_ray=False)
@dataclass(frozen=True, kw_only=True)
class ImitationSettings(DemonstrationSettings):
    """A network learns what a teacher would play (`train.imitation`)."""

    teacher: str = "alphabeta"
    """Whom it imitates, as `agents.make` knows it: a search, a heuristic, a rule file, another
    policy.
    """
    teacher_options: dict[str, Any] = field(default_factory=dict)
    """The teacher's own options, e.g. nodes for a search."""
    temperature: float | None = None
    """With it lessons are soft, and alphabeta must be the teacher: its nodes are shared among the
    moves, and each move is learned in proportion to exp(score / temperature). Without it, only the
    teacher's move is learned."""
    value_share: float = 0.0
    """The share of the search's score in what the value head learns, 0..1, if there is a
    temperature. The return has the rest, and the score counts alone where an episode was cut
    off."""
    num_steps: int = 32
    """Steps of every game between two rows of progress.csv."""
    replay_ratio: float = 5.0
    """Lessons learned from for each one that the teacher gave."""
    replay_capacity: int = 1_000_000
    """Lessons remembered, a batch at least; one takes as many bytes as the observation."""
    beta: float | Knots = 0.25
    """Probability that the teacher's move is played instead of the network's, a number or knots
    over agent steps.
    """
    explore: float = 0.3
    """Share of the network's moves that are drawn from its probabilities; the others are its
    likeliest.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.algorithm, "num_steps", 1)
        if self.replay_capacity < self.train_batch_size:
            raise ConfigError(
                f"imitation.replay_capacity is {self.replay_capacity}, less than a batch of"
                f" {self.train_batch_size}, so nothing would be learned; raise it, or lower"
                " imitation.train_batch_size"
            )
        for name in ("explore", "value_share"):
            require(self, self.algorithm, name, 0.0, 1.0)
        require(self, self.algorithm, "temperature", 1.0)
        if self.value_share and self.temperature is None:
            raise ConfigError(
                f"imitation.value_share is {self.value_share}, but there are scores only with a"
                " temperature; set imitation.temperature=50, for instance"
            )
        require(self, self.algorithm, "replay_ratio", 0.0)
        require_schedule(self, self.algorithm, "beta", 1.0)


@registered(
    "learned_evaluation",
    trainer="train.learned_evaluation:EvaluationTrainer",
    uses_ray=False,
    plays_on_cluster=True,
    has_policy=False,
)
@dataclass(frozen=True, kw_only=True)
class LearnedEvaluationSettings(AlgorithmSettings):
    """Alpha-beta's evaluation of duels learns from its own games (`train.learned_evaluation`)."""

    player: str = "alphabeta?evaluation=hand-written"
    """The search with which the first generation begins, as `agents.make` takes it."""
    games: int = 36_000
    """Games of self-play per generation; they are rounded up to whole blocks of 8."""
    nodes: int = 300
    """Nodes per move in self-play."""
    randomness: float = 0.2
    """The largest share of random safe moves. Each game has a share of its own between 0 and
    this.
    """
    opening_turns: int = 8
    """The most random turns at the beginning. Each game has a number of its own between 0 and
    this.
    """
    every: int = 2
    """Turns of a game between two positions that are learned from."""
    inner_positions: int = 0
    """Positions that are learned from inside the search of each of these, where it stands after
    random numbers of nodes. A search of their own scores them. With 1, self-play takes about twice
    the time."""
    max_turns: int = 1000
    """Turns after which a game of self-play is drawn."""
    discount: float = 0.97
    """What a result is worth less for each turn that is left until the game ends, 0..1."""
    search_share: float = 0.5
    """The share of the search's score in what a position is said to be worth; the game's result has
    the rest, 0..1.
    """
    ridge: float = 30.0
    """The penalty on the square of each weight, for features of variance 1."""
    phases: int = 3
    """Phases of a game with weights of their own, split by the sum of both lengths."""
    gate_nodes: int = 2000
    """Nodes per move of the player that a new evaluation has to beat."""
    gate_speed: float = 0.87
    """Nodes per second with a learned evaluation, as a share of those without. Against a player
    without one, a new evaluation has so many fewer nodes, so that both have equal time."""
    gate_elo1: float = 15.0
    """The gain at which the gate's sequential test accepts, in normalised Elo; it refuses at 0."""
    gate_games: int = 2000
    """Games after which the gate ends undecided. The evaluation is then not accepted."""
    games_per_iteration: int = 512
    """The most games between two rows of progress.csv, in self-play and in the gate. A run stops
    only between two rows.
    """
    num_processes: int | None = None
    """Processes that play; None: as many as there are cores, or with --cluster as many as that
    has.
    """

    def __post_init__(self) -> None:
        for name in (
            "games",
            "nodes",
            "every",
            "max_turns",
            "phases",
            "gate_nodes",
            "num_processes",
        ):
            require(self, self.algorithm, name, 1)
        for name in ("gate_games", "games_per_iteration"):
            require(self, self.algorithm, name, 2)
        for name in ("randomness", "discount", "search_share", "gate_speed"):
            require(self, self.algorithm, name, 0.0, 1.0)
        for name in ("opening_turns", "inner_positions", "ridge"):
            require(self, self.algorithm, name, 0)


@registered("cloning", trainer="train.cloning:Cloning", uses_ray=False)
@dataclass(frozen=True, kw_only=True)
class CloningSettings(DemonstrationSettings):
    """A network learns what snakes played in recorded games (`train.cloning`). `train --from-games`
    sets the first three.
    """

    games: list[str] = field(default_factory=list)
    """Recordings, or folders of them. Games on other boards than the world's are left out."""
    games_sha256: str | None = None
    """The recordings' hash when the run began. Other games under the same names are refused. With
    None, nothing is compared.
    """
    snakes: list[str] = field(default_factory=list)
    """Whom it clones, by names or ids; with none, the snake for whom each game was recorded."""
    held_out: float = 0.1
    """Share of the games that is never learned from, but measures what was learned."""
    most_decisions: int = 400_000
    """Decisions read at most; one takes as many bytes as the observation. Later games are left
    out.
    """
    num_updates: int = 50
    """Batches between two rows of progress.csv."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("most_decisions", "num_updates"):
            require(self, self.algorithm, name, 1)
        require(self, self.algorithm, "held_out", 0.01, 0.9)


def _load_installed() -> None:
    """Import the settings that installed packages name in the group of entry points
    `procsnake.algorithms`.

    A package that fails is left out and logged, because every other algorithm still works.
    """
    for point in metadata.entry_points(group="procsnake.algorithms"):
        try:
            point.load()
        except Exception as error:
            _LOGGER.warning(
                "the algorithm %s of an installed package is left out: %s: %s",
                point.name,
                type(error).__name__,
                error,
            )


# Last, because packages import what is above.
_load_installed()
