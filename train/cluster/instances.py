"""Works out from the name of an instance type how many processors and GPUs it has: `ml.g5.12xlarge` has 48 and 4."""

from __future__ import annotations

import re

from envs.common.errors import ConfigError, UnknownNameError

_CPU_FAMILIES = (
    "m4", "m5", "m6i", "m7i", "m8i", "c4", "c5", "c5n", "c6i", "c7i", "c8i", "r5", "r5d", "r6i", "r7i", "r8i", "t3",
    "m7i-flex", "m8i-flex", "c7i-flex", "c8i-flex", "r8i-flex",
)  # fmt: skip
_GPU_FAMILIES = ("g4dn", "g5", "g6", "g6e", "p2", "p3", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en")
_SEVERAL_GPUS = {
    **{f"{family}.{size}xlarge": gpus for family in ("g4dn", "g5", "g6", "g6e") for size, gpus in ((12, 4), (24, 4), (48, 8))},
    "p2.8xlarge": 8, "p2.16xlarge": 16, "p3.8xlarge": 4, "p3.16xlarge": 8, "p3dn.24xlarge": 8, "p4d.24xlarge": 8,
    "p4de.24xlarge": 8, "p5.48xlarge": 8, "p5e.48xlarge": 8, "p5en.48xlarge": 8,
}  # fmt: skip
_ODD_VCPUS = {"c4.8xlarge": 36}
_FORM = re.compile(r"ml\.(?P<family>[a-z0-9-]+)\.(?P<size>medium|large|(?P<times>\d*)xlarge)")


def vcpus(instance: str) -> int:
    """Return its number of processors, two of which share a core: 4 for each "x" of its size.

    Raises what `check_instance` raises.
    """
    match = check_instance(instance)
    kind = instance.removeprefix("ml.")
    if match["size"] in ("medium", "large"):
        return 2
    return _ODD_VCPUS.get(kind, 4 * int(match["times"] or 1))


def gpus(instance: str) -> int:
    """Return its number of GPUs. Raises what `check_instance` raises."""
    family = check_instance(instance)["family"]
    return _SEVERAL_GPUS.get(instance.removeprefix("ml."), 1) if family in _GPU_FAMILIES else 0


def check_instance(instance: str) -> re.Match[str]:
    """Return the parts of the name. Raises `ConfigError` if it is no instance type, `UnknownNameError` for unknown families."""
    match = _FORM.fullmatch(instance)
    if not match:
        raise ConfigError(f"instance {instance!r} is no SageMaker instance type; e.g. ml.c5.4xlarge, ml.g5.2xlarge")
    known = (*_CPU_FAMILIES, *_GPU_FAMILIES)
    if match["family"] not in known:
        raise UnknownNameError("instance family", match["family"], known, hint=f"It is part of {instance!r}.")
    return match
