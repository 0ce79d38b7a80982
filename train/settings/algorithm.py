"""What the settings of every algorithm are, and their register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

ALGORITHMS: dict[str, type[AlgorithmSettings]] = {}
"""The settings' classes, by the name of their algorithm."""


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
