"""Describes a run's size, which is `scale` in an experiment: this machine, one instance, several, or two kinds of instances."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

from envs.common.errors import ConfigError
from train.cluster.instances import check_instance, gpus, vcpus

LEARNER, ROLLOUT = "learner", "rollout"
"""The names of the two groups of machines. On a cluster, each machine of a group has the Ray resource `group_<name>`."""


@dataclass(frozen=True, kw_only=True)
class Instances:
    """Some machines of one kind."""

    instance: str
    """A SageMaker instance type, as ml.c5.4xlarge."""
    count: int = 1
    """How many."""

    def __post_init__(self) -> None:
        check_instance(self.instance)
        _at_least_one("count", self.count)

    @property
    def vcpus(self) -> int:
        """The number of processors of all instances together."""
        return self.count * vcpus(self.instance)

    @property
    def gpus(self) -> int:
        """The number of GPUs of all instances together."""
        return self.count * gpus(self.instance)


@dataclass(frozen=True, kw_only=True)
class Local:
    """The machine, or the cluster, that the run is started on."""

    kind: Literal["local"] = "local"
    """Which of the sizes this is: local, single, or another of `train.cluster.scale`."""


@dataclass(frozen=True, kw_only=True)
class Single:
    """One instance plays and learns."""

    instance: str
    """Its type."""
    workers: int | None = None
    """Env runners; None: one for each processor but one."""
    kind: Literal["single"] = "single"
    """Which of the sizes this is: local, single, or another of `train.cluster.scale`."""

    def __post_init__(self) -> None:
        check_instance(self.instance)
        _at_least_one("workers", self.workers)

    @property
    def learner(self) -> Instances:
        """Where it learns."""
        return Instances(instance=self.instance)

    @property
    def derived_workers(self) -> tuple[int, str]:
        """Env runners, and how they come about."""
        return _cpus_but_one(self.learner)


@dataclass(frozen=True, kw_only=True)
class Homogeneous:
    """Several instances of one kind: the first one learns, all of them play."""

    instance: str
    """Their type."""
    count: int
    """How many."""
    workers: int | None = None
    """Env runners; None: one for each processor but one."""
    kind: Literal["homogeneous"] = "homogeneous"
    """Which of the sizes this is: local, single, or another of `train.cluster.scale`."""

    def __post_init__(self) -> None:
        check_instance(self.instance)
        _at_least_one("count", self.count)
        _at_least_one("workers", self.workers)

    @property
    def learner(self) -> Instances:
        """Where it learns."""
        return Instances(instance=self.instance)

    @property
    def derived_workers(self) -> tuple[int, str]:
        """Env runners, and how they come about."""
        return _cpus_but_one(Instances(instance=self.instance, count=self.count))


@dataclass(frozen=True, kw_only=True)
class Heterogeneous:
    """Some instances learn, usually with GPUs, while others play."""

    learner: Instances
    """They learn, the first one also leads."""
    rollout: Instances
    """They play."""
    mode: Literal["groups", "two-jobs"] = "groups"
    """One job with two groups of instances, or two jobs in one VPC that meet through S3."""
    workers: int | None = None
    """Env runners; None: one for each processor of the playing instances."""
    kind: Literal["heterogeneous"] = "heterogeneous"
    """Which of the sizes this is: local, single, or another of `train.cluster.scale`."""

    def __post_init__(self) -> None:
        _at_least_one("workers", self.workers)

    @property
    def derived_workers(self) -> tuple[int, str]:
        """Env runners, and how they come about."""
        each = vcpus(self.rollout.instance)
        return self.rollout.vcpus, f"{each} CPUs × {self.rollout.count} playing instance{_s(self.rollout.count)}"


Scale = Local | Single | Homogeneous | Heterogeneous


def _cpus_but_one(instances: Instances) -> tuple[int, str]:
    each, count = vcpus(instances.instance), instances.count
    return each * count - 1, f"{each} CPUs × {count} instance{_s(count)} − 1, which learns"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _at_least_one(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise ConfigError(f"scale.{name} is {value!r}; it must be at least 1")


_TERM = re.compile(r"(?:(?P<count>\d+)\s*[*x×]\s*)?(?P<instance>ml\.\S+)")


def scale_overrides(text: str, *, two_jobs: bool = False) -> list[str]:
    """Overrides of an experiment for "ml.g5.xlarge", "3*ml.c5.4xlarge" or "ml.g5.xlarge + 2*ml.c5.4xlarge" (learn + play).

    Raises `ConfigError` for any other form.
    """
    terms = [_TERM.fullmatch(term.strip()) for term in text.split("+")]
    if not all(terms) or len(terms) > 2:
        raise ConfigError(f"instances {text!r} are not like ml.g5.xlarge, 3*ml.c5.4xlarge or ml.g5.xlarge+2*ml.c5.4xlarge")
    found = [Instances(instance=term["instance"], count=int(term["count"] or 1)) for term in terms if term]
    if len(found) == 2:
        scale: Any = Heterogeneous(learner=found[0], rollout=found[1], mode="two-jobs" if two_jobs else "groups")
    elif two_jobs:
        raise ConfigError(f"two jobs need two kinds of instances, but {text!r} names one; e.g. ml.g5.xlarge+2*ml.c5.4xlarge")
    elif found[0].count == 1:
        scale = Single(instance=found[0].instance)
    else:
        scale = Homogeneous(instance=found[0].instance, count=found[0].count)
    return [f"scale.{key}={value}" for key, value in _flat(asdict(scale)) if value is not None]


def _flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat = []
    for key, value in values.items():
        flat += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
    return flat
