"""Derives the number of processors and GPUs from the name of an instance type: `ml.g5.12xlarge` has
48 and 4.

Machines that aren't AWS's are named by their size: `48cpu-4gpu-192gib`.
"""

from __future__ import annotations

import re

from envs.common.errors import ConfigError, UnknownNameError

_CPU_FAMILIES = (
    "m4", "m5", "m6i", "m7i", "m8i", "m7i-flex", "m8i-flex",
    "c4", "c5", "c5n", "c6i", "c7i", "c8i", "c7i-flex", "c8i-flex",
    "r5", "r5d", "r6i", "r7i", "r8i", "r8i-flex", "t3",
)  # fmt: skip
_GPU_FAMILIES = (
    "g4dn", "g5", "g6", "g6e", "g7", "g7e", "p2", "p3", "p3dn", "p4d", "p4de",
    "p5", "p5e", "p5en", "p6-b200", "p6-b300",
)  # fmt: skip
_SEVERAL_GPUS = {
    "g4dn.12xlarge": 4, "g4dn.24xlarge": 4, "g4dn.48xlarge": 8,
    "g5.12xlarge": 4, "g5.24xlarge": 4, "g5.48xlarge": 8,
    "g6.12xlarge": 4, "g6.24xlarge": 4, "g6.48xlarge": 8,
    "g6e.12xlarge": 4, "g6e.24xlarge": 4, "g6e.48xlarge": 8,
    "g7.12xlarge": 2, "g7.24xlarge": 4, "g7.48xlarge": 8,
    "g7e.12xlarge": 2, "g7e.24xlarge": 4, "g7e.48xlarge": 8,
    "p2.8xlarge": 8, "p2.16xlarge": 16,
    "p3.8xlarge": 4, "p3.16xlarge": 8, "p3dn.24xlarge": 8,
    "p4d.24xlarge": 8, "p4de.24xlarge": 8,
    "p5.48xlarge": 8, "p5e.48xlarge": 8, "p5en.48xlarge": 8,
    "p6-b200.48xlarge": 8, "p6-b300.48xlarge": 8,
}  # fmt: skip
"""The GPUs of the instance types that have several; all others of a GPU family have one."""
_FAMILIES_WITH_DISKS = (
    "g4dn", "g5", "g6", "g6e", "g7", "g7e", "p3dn", "p4d", "p4de",
    "p5", "p5e", "p5en", "p6-b200", "p6-b300",
)  # fmt: skip
_NO_USE = {
    "trn": "its chips are AWS's Trainium, which the image's torch can't use",
    "p6e": "its processors are ARM, and the image is built for x86",
}
"""Families that SageMaker offers and on which this wouldn't train, by the beginning of their
names.
"""
_ODD_VCPUS = {"c4.8xlarge": 36}
_FORM = re.compile(
    r"ml\.(?P<family>[a-z0-9-]+)\.(?P<size>medium|large|(?P<times>(?:[1-9]\d*)?)xlarge)"
)
_SIZE = re.compile(
    r"(?P<cpus>[1-9]\d{0,3})cpu(?:-(?P<gpus>\d{1,2})gpu)?(?:-(?P<gib>[1-9]\d{0,4})gib)?"
)


def vcpus(instance: str) -> int:
    """Return its number of processors (two per core): 4 for each "x" of its size.

    Raises what `check_instance` raises.
    """
    if size := _SIZE.fullmatch(instance):
        return int(size["cpus"])
    match = _parts(instance)
    kind = instance.removeprefix("ml.")
    if match["size"] in ("medium", "large"):
        return 2
    return _ODD_VCPUS.get(kind, 4 * int(match["times"] or 1))


def gpus(instance: str) -> int:
    """Return its number of GPUs. Raises what `check_instance` raises."""
    if size := _SIZE.fullmatch(instance):
        return int(size["gpus"] or 0)
    family = _parts(instance)["family"]
    if family in _GPU_FAMILIES:
        return _SEVERAL_GPUS.get(instance.removeprefix("ml."), 1)
    return 0


def memory_gib(instance: str) -> int | None:
    """Return the memory in a size such as 8cpu-32gib; None if it names none, and for AWS types."""
    size = _SIZE.fullmatch(instance)
    return int(size["gib"]) if size and size["gib"] else None


def is_size(instance: str) -> bool:
    """Return whether this is a size such as 8cpu-32gib rather than an AWS type."""
    return _SIZE.fullmatch(instance) is not None


def has_own_disk(instance: str) -> bool:
    """Return whether its type comes with a disk of its own (NVMe). Raises what `check_instance`
    raises.
    """
    family = _parts(instance)["family"]
    return family.endswith("d") or family in _FAMILIES_WITH_DISKS


def check_instance(instance: str) -> None:
    """Check the name of an instance type, or a size such as 8cpu-32gib.

    Raises `ConfigError` if it is neither or can't be used for training, and `UnknownNameError` for
    unknown families."""
    if not is_size(instance):
        _parts(instance)


def _parts(instance: str) -> re.Match[str]:
    match = _FORM.fullmatch(instance)
    if not match:
        raise ConfigError(
            f"instance {instance!r} is not a SageMaker instance type, e.g. ml.c5.4xlarge or"
            " ml.g5.2xlarge, and no size, e.g. 16cpu or 8cpu-1gpu-32gib"
        )
    if reason := next(
        (why for family, why in _NO_USE.items() if match["family"].startswith(family)), None
    ):
        raise ConfigError(
            f"instance {instance!r} can't be used: {reason}; take one with GPUs of NVIDIA's, e.g."
            " ml.g6.2xlarge"
        )
    known = (*_CPU_FAMILIES, *_GPU_FAMILIES)
    if match["family"] not in known:
        raise UnknownNameError(
            "instance family", match["family"], known, hint=f"It is part of {instance!r}."
        )
    return match
