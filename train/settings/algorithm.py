"""The base class of every algorithm's settings, and their registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from train.settings.limits import require, require_plain

if TYPE_CHECKING:
    # Python 3.10's typing doesn't have it.
    from typing_extensions import Self

ALGORITHMS: dict[str, type[AlgorithmSettings]] = {}
"""The settings' classes, by the name of their algorithm."""


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The network to train."""

    name: str = "mlp"
    """The network's name, as `agents.networks.build` knows it, or my_module:Net for one of your
    own.
    """
    options: dict[str, Any] = field(default_factory=dict)
    """The network's own options."""

    def __post_init__(self) -> None:
        require_plain(self.options, "network.options")


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
    (`export`). Its `check(experiment)` says before a run whether it can begin."""
    checks_start: ClassVar[bool] = False
    """Whether a trainer of a network says before a run whether it can begin: its class has
    `check(experiment, world, progress)`.
    """
    needs_env_runners: ClassVar[bool] = False
    """Whether it plays in processes of its own in any case."""
    can_begin_with_weights: ClassVar[bool] = False
    """Whether the network can begin with another policy's weights (`init_from`)."""
    learns_from_rollouts: ClassVar[bool] = False
    """Whether each update learns from all env runners' newest rollouts, so that its batch grows
    with their number.
    """

    @property
    def is_recurrent(self) -> bool:
        """Whether the policy has a memory."""
        return False

    def network_for(
        self, network: NetworkSettings, world: str, options: Mapping[str, Any]
    ) -> NetworkSettings:
        """Return the network that is trained in a world with these options: `network`, or one that
        wraps it in a memory or in Q heads.
        """
        return network

    def completed_for(self, world: str, options: Mapping[str, Any]) -> Self:
        """Return the settings with the values that a world with these options decides."""
        return self

    def for_env_runners(
        self, num_env_runners: int, *, tuned_for: int, num_games: int
    ) -> tuple[Self, int]:
        """Return the settings for this number of env runners, and how many games each of them then
        plays. They were tuned for `tuned_for` env runners, each of which plays `num_games`.
        """
        return self, num_games


class RolloutSettings(AlgorithmSettings):
    """What is common to algorithms whose env runners play rollouts: those that train on RLlib.

    This isn't a dataclass, because each algorithm lists these settings among its own, with its own
    defaults."""

    num_steps: int
    """Steps of every game in a rollout."""
    bf16: bool | None
    """Whether the network computes in bfloat16; None: if the hardware is fast at it."""
    num_threads: int | None
    """Threads of torch where it learns; None: measured now and then."""

    @property
    def uses_per_decision(self) -> float:
        """How often each decision is learned from, on average."""
        raise NotImplementedError

    @property
    def num_receivers(self) -> int:
        """The number of processes that take in rollouts: 1 is the main process alone."""
        return 1

    def fragments_per_update(self, num_env_runners: int) -> int:
        """Return how many fragments are played between two updates. Without env runners the main
        process plays.
        """
        return max(1, num_env_runners)

    def describe_batch(self, game_steps: int, *, tuned_for: int) -> str:
        """Return in words what an update learns from, where env runners play this many game steps
        between two updates, and the algorithm was tuned for `tuned_for` of them.
        """
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class DemonstrationSettings(AlgorithmSettings):
    """Settings shared by imitation of a teacher and cloning of recorded snakes."""

    can_begin_with_weights: ClassVar[bool] = True

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


Settings = TypeVar("Settings", bound=AlgorithmSettings)


def registered(
    name: str,
    *,
    trainer: str,
    uses_ray: bool = True,
    plays_on_cluster: bool = False,
    has_policy: bool = True,
) -> Callable[[type[Settings]], type[Settings]]:
    """Return a decorator that makes a dataclass the settings of the algorithm `name`.

    `trainer` is "module:class" of a `train.rllib.batched_config.BatchedConfig`, whose settings are
    `RolloutSettings`, or, without Ray, of the algorithm itself."""

    def register(settings: type[Settings]) -> type[Settings]:
        settings.algorithm = name
        settings.trainer = trainer
        settings.uses_ray = uses_ray
        settings.plays_on_cluster = plays_on_cluster
        settings.has_policy = has_policy
        ALGORITHMS[name] = settings
        return settings

    return register
