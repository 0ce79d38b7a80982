"""Refuses names that Kubernetes, KubeRay, Slurm or Docker would refuse later.

The message offers the nearest valid name.
"""

from __future__ import annotations

import re

from envs.common.errors import ConfigError

LONGEST_RAY_JOB = 47
"""KubeRay adds a suffix to a RayJob's name for its cluster, and names of services are cut off at 63
letters.
"""
_LONGEST_LABEL = 63
_LONGEST_SUBDOMAIN = 253
_LONGEST_SLURM_NAME = 64
_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_SLURM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_IMAGE = re.compile(
    r"[a-z0-9][A-Za-z0-9._-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[a-f0-9]{64})?"
)
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/+=-]+")


def label(option: str, name: str, longest: int = _LONGEST_LABEL) -> str:
    """Return the name if it is valid for a Kubernetes job or namespace (RFC 1035). Raises
    `ConfigError`.
    """
    if _LABEL.fullmatch(name) and len(name) <= longest:
        return name
    near = re.sub(r"[^a-z0-9]+", "-", name.lower()).lstrip("-0123456789")[:longest].strip("-")
    near = near or "my-run"
    rule = (
        f"Kubernetes takes up to {longest} small letters, digits and dashes, the first one a letter"
    )
    raise ConfigError(f"{option} {name!r} can't be used: {rule}; e.g. {option} {near}")


def claim(name: str, option: str = "--claim") -> str:
    """Return the name if it is valid for a Kubernetes volume claim or the like (RFC 1123). Raises
    `ConfigError`.
    """
    if _SUBDOMAIN.fullmatch(name) and len(name) <= _LONGEST_SUBDOMAIN:
        return name
    near = re.sub(r"[^a-z0-9.]+", "-", name.lower())[:_LONGEST_SUBDOMAIN].strip("-.") or "my-claim"
    rule = f"Kubernetes takes up to {_LONGEST_SUBDOMAIN} small letters, digits, dashes and dots"
    raise ConfigError(f"{option} {name!r} can't be used: {rule}; e.g. {option} {near}")


_LABELS = re.compile(
    r"(?P<key>[A-Za-z0-9][A-Za-z0-9._/-]{0,250})="
    r"(?P<value>[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)"
)
_TAINT = re.compile(
    r"(?P<key>[A-Za-z0-9][A-Za-z0-9._/-]{0,250})(=(?P<value>[A-Za-z0-9._-]{1,63}))?"
    r"(:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute))?"
)


def node_label(text: str) -> tuple[str, str]:
    """Return key and value of a node's label, KEY=VALUE. Raises `ConfigError`."""
    match = _LABELS.fullmatch(text)
    if not match:
        raise ConfigError(
            f"--node-selector {text!r} is not of the form KEY=VALUE, e.g. --node-selector pool=gpu"
        )
    return match["key"], match["value"]


def toleration(text: str) -> dict[str, str]:
    """Return Kubernetes' form of a toleration for a taint, KEY[=VALUE][:EFFECT] as kubectl has it.

    Raises `ConfigError`."""
    match = _TAINT.fullmatch(text)
    if not match:
        raise ConfigError(
            f"--toleration {text!r} is not of the form KEY[=VALUE][:EFFECT], e.g. --toleration"
            " pool=gpu:NoSchedule"
        )
    entry = {"key": match["key"], "operator": "Exists"}
    if match["value"]:
        entry |= {"operator": "Equal", "value": match["value"]}
    if match["effect"]:
        entry["effect"] = match["effect"]
    return entry


def slurm_name(option: str, name: str) -> str:
    """Return the name if it can stand in a line of a batch script. Raises `ConfigError`."""
    if _SLURM_NAME.fullmatch(name) and len(name) <= _LONGEST_SLURM_NAME:
        return name
    near = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_LONGEST_SLURM_NAME].strip("-._") or "my-run"
    rule = (
        f"a batch script takes up to {_LONGEST_SLURM_NAME} letters, digits, dashes, dots and"
        " underscores"
    )
    raise ConfigError(f"{option} {name!r} can't be used: {rule}; e.g. {option} {near}")


def image(name: str) -> str:
    """Return the name if it is a valid image name. Raises `ConfigError`."""
    if _IMAGE.fullmatch(name):
        return name
    raise ConfigError(
        f"--image {name!r} is not the name of an image; e.g. --image"
        " registry.example.org/procsnake-training:1"
    )


def plain_path(option: str, path: str) -> str:
    """Return the path if it can stand in a batch script and in Slurm's patterns of file names.
    Raises `ConfigError`.
    """
    if _PLAIN_PATH.fullmatch(path) and not path.startswith("-"):
        return path
    near = re.sub(r"[^A-Za-z0-9._/+=-]+", "-", path).strip("-") or "runs"
    rule = "Slurm's lines take letters, digits and ._/+=- only"
    raise ConfigError(f"{option} {path!r} can't be used: {rule}; e.g. {option} {near}")
