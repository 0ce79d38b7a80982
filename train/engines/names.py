"""Refuses names that Kubernetes, KubeRay, Slurm or Docker would refuse later, and offers the nearest one that they take."""

from __future__ import annotations

import re

from envs.common.errors import ConfigError

LONGEST_RAY_JOB = 47
"""KubeRay adds a suffix to a RayJob's name for its cluster, and names of services are cut off at 63 letters."""
_LONGEST_LABEL, _LONGEST_SUBDOMAIN, _LONGEST_SLURM_NAME = 63, 253, 64
_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_SLURM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_IMAGE = re.compile(
    r"[a-z0-9][A-Za-z0-9._-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[a-f0-9]{64})?"
)
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/+=-]+")


def label(option: str, name: str, longest: int = _LONGEST_LABEL) -> str:
    """Return the name if Kubernetes takes it for a job or a namespace (RFC 1035). Raises `ConfigError`."""
    if _LABEL.fullmatch(name) and len(name) <= longest:
        return name
    near = re.sub(r"[^a-z0-9]+", "-", name.lower()).lstrip("-0123456789")[:longest].strip("-") or "my-run"
    rule = f"Kubernetes takes up to {longest} small letters, digits and dashes, the first one a letter"
    raise ConfigError(f"{option} {name!r} can't be used: {rule}; e.g. {option} {near}")


def claim(name: str) -> str:
    """Return the name if Kubernetes takes it for a volume claim (RFC 1123). Raises `ConfigError`."""
    if _SUBDOMAIN.fullmatch(name) and len(name) <= _LONGEST_SUBDOMAIN:
        return name
    near = re.sub(r"[^a-z0-9.]+", "-", name.lower())[:_LONGEST_SUBDOMAIN].strip("-.") or "my-claim"
    rule = f"Kubernetes takes up to {_LONGEST_SUBDOMAIN} small letters, digits, dashes and dots"
    raise ConfigError(f"--claim {name!r} can't be used: {rule}; e.g. --claim {near}")


def slurm_name(option: str, name: str) -> str:
    """Return the name if it can stand in a line of a batch script. Raises `ConfigError`."""
    if _SLURM_NAME.fullmatch(name) and len(name) <= _LONGEST_SLURM_NAME:
        return name
    near = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_LONGEST_SLURM_NAME].strip("-._") or "my-run"
    rule = f"a batch script takes up to {_LONGEST_SLURM_NAME} letters, digits, dashes, dots and underscores"
    raise ConfigError(f"{option} {name!r} can't be used: {rule}; e.g. {option} {near}")


def image(name: str) -> str:
    """Return the name if it can be an image's. Raises `ConfigError`."""
    if _IMAGE.fullmatch(name):
        return name
    raise ConfigError(f"--image {name!r} is no name of an image; e.g. --image registry.example.org/procsnake-training:1")


def plain_path(option: str, path: str) -> str:
    """Return the path if it can stand in a batch script and in Slurm's patterns of file names. Raises `ConfigError`."""
    if _PLAIN_PATH.fullmatch(path) and not path.startswith("-"):
        return path
    near = re.sub(r"[^A-Za-z0-9._/+=-]+", "-", path).strip("-") or "runs"
    rule = "Slurm's lines take letters, digits and ._/+=- only"
    raise ConfigError(f"{option} {path!r} can't be used: {rule}; e.g. {option} {near}")
