"""The base class of every algorithm's settings, and their registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from train.settings.limits import require_plain

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

    `trainer` is "module:class" of a `train.rllib.batched_config.BatchedConfig` or, without Ray, of
    the algorithm itself."""

    def register(settings: type[Settings]) -> type[Settings]:
        settings.algorithm = name
        settings.trainer = trainer
        settings.uses_ray = uses_ray
        settings.plays_on_cluster = plays_on_cluster
        settings.has_policy = has_policy
        ALGORITHMS[name] = settings
        return settings

    return register
