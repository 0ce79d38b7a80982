"""Describes a run's size (`scale` in an experiment): this machine, one instance, several, or two
kinds of instances.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

from envs.common.errors import ConfigError
from envs.common.plain_values import flat
from train.settings.instances import check_instance, gpus, vcpus

LEARNER = "learner"
ROLLOUT = "rollout"
ALL = "all"
"""What machines are called that learn, that play, and that do both."""
GROUP = "group_"
"""Beginning of the name of the Ray resource that each machine of a group has."""
_PLENTY = 1000


@dataclass(frozen=True, kw_only=True)
class Instances:
    """One or more machines of the same type."""

    instance: str
    """A SageMaker instance type, such as ml.c5.4xlarge, or for other engines a size, such as 16cpu
    or 8cpu-1gpu-32gib.
    """
    count: int = 1
    """The number of instances."""

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

    @property
    def num_learners(self) -> int:
        """The number of learners besides the main process: one per GPU, or per instance without
        GPUs.

        It is 0 where that would be a single one, because then the main process learns.
        """
        several = self.gpus or self.count
        return several if several > 1 else 0


@dataclass(frozen=True, kw_only=True)
class Local:
    """The run uses the machine or cluster on which it is started."""

    kind: Literal["local"] = "local"
    """The name of this kind of scale: local, single, homogeneous or heterogeneous."""


@dataclass(frozen=True, kw_only=True)
class Single:
    """One instance plays and learns."""

    instance: str
    """The instance's type."""
    workers: int | None = None
    """The number of env runners. With None, there is one for each processor that doesn't learn."""
    kind: Literal["single"] = "single"
    """The name of this kind of scale: local, single, homogeneous or heterogeneous."""

    def __post_init__(self) -> None:
        check_instance(self.instance)
        _at_least_one("workers", self.workers)

    @property
    def learner(self) -> Instances:
        """The instances that learn."""
        return Instances(instance=self.instance)

    @property
    def derived_workers(self) -> tuple[int, str]:
        """The number of env runners that follows from the instances, and the calculation as
        text.
        """
        return _cpus_but_learners(self.learner, self.learner)


@dataclass(frozen=True, kw_only=True)
class Homogeneous:
    """Several instances of one type play. All of them also learn if they have GPUs, else the first
    one does.
    """

    instance: str
    """The instances' type."""
    count: int
    """The number of instances."""
    workers: int | None = None
    """The number of env runners. With None, there is one for each processor that doesn't learn."""
    kind: Literal["homogeneous"] = "homogeneous"
    """The name of this kind of scale: local, single, homogeneous or heterogeneous."""

    def __post_init__(self) -> None:
        check_instance(self.instance)
        _at_least_one("count", self.count)
        _at_least_one("workers", self.workers)

    @property
    def learner(self) -> Instances:
        """The instances that learn: all of them if they have GPUs, because idle GPUs would cost
        money.
        """
        first = Instances(instance=self.instance)
        if first.gpus:
            return Instances(instance=self.instance, count=self.count)
        return first

    @property
    def derived_workers(self) -> tuple[int, str]:
        """The number of env runners that follows from the instances, and the calculation as
        text.
        """
        return _cpus_but_learners(Instances(instance=self.instance, count=self.count), self.learner)


@dataclass(frozen=True, kw_only=True)
class Heterogeneous:
    """Some instances learn, usually with GPUs, while others play."""

    learner: Instances
    """The instances that learn. The first one also leads."""
    rollout: Instances
    """The instances that play."""
    mode: Literal["groups", "two-jobs"] = "groups"
    """Whether there is one job with two groups of instances, or two jobs in one VPC that find each
    other through S3.
    """
    workers: int | None = None
    """The number of env runners. With None, there is one for each processor of the playing
    instances.
    """
    kind: Literal["heterogeneous"] = "heterogeneous"
    """The name of this kind of scale: local, single, homogeneous or heterogeneous."""

    def __post_init__(self) -> None:
        _at_least_one("workers", self.workers)

    @property
    def derived_workers(self) -> tuple[int, str]:
        """The number of env runners that follows from the instances, and the calculation as
        text.
        """
        each = vcpus(self.rollout.instance)
        return (
            self.rollout.vcpus,
            f"{each} CPUs × {self.rollout.count} playing instance{_s(self.rollout.count)}",
        )


Scale = Local | Single | Homogeneous | Heterogeneous


def group_resources(group: str) -> dict[str, int]:
    """Return the Ray resources that mark a machine of `group`, in amounts that never run out.
    Machines that do both form no group.
    """
    return {} if group == ALL else {f"{GROUP}{group}": _PLENTY}


def machines(scale: Single | Homogeneous | Heterogeneous) -> list[Instances]:
    """Return all instances of a run, those that learn first."""
    if isinstance(scale, Heterogeneous):
        return [scale.learner, scale.rollout]
    return [Instances(instance=scale.instance, count=getattr(scale, "count", 1))]


def cpus_for_playing(cpus: int, num_learners: int) -> int:
    """Return how many of the CPUs on which a run plays and learns are left for env runners.

    Each learner takes one, even if it learns on a GPU. Without learners the main process learns,
    and takes one."""
    return cpus - max(1, num_learners)


def _cpus_but_learners(instances: Instances, learner: Instances) -> tuple[int, str]:
    each = vcpus(instances.instance)
    count = instances.count
    playing = cpus_for_playing(instances.vcpus, learner.num_learners)
    learning = instances.vcpus - playing
    return (
        playing,
        (
            f"{each} CPUs × {count} instance{_s(count)} − {learning}, which"
            f" learn{'s' if learning == 1 else ''}"
        ),
    )


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _at_least_one(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise ConfigError(f"scale.{name} is {value!r}; it must be at least 1")


_TERM = re.compile(r"(?:(?P<count>\d{1,6})\s*[*x×]\s*)?(?P<instance>ml\.\S+|\d+cpu\S*)")


def scale_overrides(text: str, *, two_jobs: bool = False) -> list[str]:
    """Return the overrides of an experiment that describe these instances.

    `text` is like "ml.g5.xlarge", "3*ml.c5.4xlarge" or "ml.g5.xlarge + 2*ml.c5.4xlarge" (these
    learn + those play). Sizes such as "8cpu-1gpu-32gib" may replace types. With `two_jobs`, the two
    kinds of instances are two jobs. Raises `ConfigError` for any other form.
    """
    terms = [_TERM.fullmatch(term.strip()) for term in text.split("+")]
    if not all(terms) or len(terms) > 2:
        raise ConfigError(
            f"instances {text!r} are not like ml.g5.xlarge, 3*ml.c5.4xlarge,"
            " ml.g5.xlarge+2*ml.c5.4xlarge or 8cpu-1gpu+2*16cpu"
        )
    instances = [
        Instances(instance=term["instance"], count=int(term["count"] or 1))
        for term in terms
        if term
    ]
    if len(instances) == 2:
        scale: Any = Heterogeneous(
            learner=instances[0], rollout=instances[1], mode="two-jobs" if two_jobs else "groups"
        )
    elif two_jobs:
        raise ConfigError(
            f"two jobs need two kinds of instances, but {text!r} names one; e.g."
            " ml.g5.xlarge+2*ml.c5.4xlarge"
        )
    elif instances[0].count == 1:
        scale = Single(instance=instances[0].instance)
    else:
        scale = Homogeneous(instance=instances[0].instance, count=instances[0].count)
    return [
        f"scale.{key}={value}" for key, value in flat(asdict(scale)).items() if value is not None
    ]
