"""The card of a policy bundle: everything known about a trained policy except its weights."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from envs.common.errors import ProcsnakeError

FORMAT = "procsnake-policy"
FORMAT_VERSION = 1
_MAX_SHAPE = 1 << 24
_MAX_ACTIONS = 1024
_DTYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool")
_LIBRARIES = ("procsnake", "numpy", "numba", "gymnasium", "ray", "torch", "onnx", "safetensors")


class BundleError(ProcsnakeError):
    """A policy bundle is missing, cut off, changed, or of another format, or it doesn't fit the
    board.
    """


@dataclass(frozen=True, kw_only=True)
class Card:
    """The content of `card.json`, in plain JSON values.

    NumPy's numbers become plain ones; numbers that aren't finite become null.

    Readers accept exactly these fields; raise FORMAT_VERSION when you change them.
    """

    environment: dict[str, Any]
    """`name` (as `envs.make` knows it) and `options` of the world it was trained in."""
    observation: dict[str, Any]
    """The observation type's contract: type, version, options."""
    observation_shape: list[int]
    """Shape of one observation, without the batch axis."""
    action: dict[str, Any]
    """The action contract: `type`, `version`, `num_actions`."""
    network: dict[str, Any]
    """`name` and `options` for `agents.networks.build`."""
    observation_dtype: str = "uint8"
    """NumPy's name of the dtype that observations have."""
    algorithm: str = ""
    """The trainer, e.g. "ppo"."""
    config: dict[str, Any] = field(default_factory=dict)
    """The resolved configuration of the training run."""
    seeds: list[int] = field(default_factory=list)
    """All seeds that the run used."""
    steps: dict[str, int] = field(default_factory=dict)
    """How long it was trained: `env_steps`, `agent_steps`, …"""
    metrics: dict[str, Any] = field(default_factory=dict)
    """What was measured of it: last training metrics, evaluations."""
    versions: dict[str, str] = field(default_factory=lambda: library_versions())
    """Versions of the libraries that made it."""
    git_commit: str = ""
    """Commit of the code that made it, if known."""
    command: str = ""
    """The command that trains it again."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each other file of the bundle, by name; `export` fills it in. On the Hub it leaves
    out the README.
    """
    format: str = FORMAT
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """Return the text of `card.json`. Raises `BundleError` if a field holds something that JSON
        can't hold.
        """
        try:
            return json.dumps(_plain(asdict(self)), indent=2, allow_nan=False) + "\n"
        except (TypeError, ValueError) as error:
            raise BundleError(
                f"the card can't be written as JSON ({error}); give it plain numbers, strings,"
                " lists and dicts"
            ) from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Card:
        """Make a card of JSON values.

        Raises `BundleError`, which names the field, if one is missing, unknown or of a wrong type.
        """
        if not isinstance(data, Mapping) or data.get("format", FORMAT) != FORMAT:
            raise BundleError(
                f"card.json is not the card of a {FORMAT} bundle; a training run exports one when"
                " it ends"
            )
        format_version = data.get("format_version", FORMAT_VERSION)
        if format_version != FORMAT_VERSION:
            raise BundleError(
                f"the bundle has format version {format_version!r}, this procsnake reads"
                f" {FORMAT_VERSION}. Update procsnake"
            )
        _check_fields(data)
        _check_part(data, "action", "num_actions", int)
        _check_part(data, "network", "name", str)
        _check_part(data, "environment", "name", str)
        _check_sizes(data)
        return cls(**data)

    def readme(self, place: str = "THIS_FOLDER") -> str:
        """Return the README for people who find the folder; `place` is the path or address that
        commands take.
        """
        # Snakes have several types of observation; a world that has but one lends it its name.
        plays_alone = self.observation.get("type") == self.environment.get("name")
        watch = f"watch {place}" if plays_alone else f"match {place} flood --watch"
        is_of_levels = self.environment.get("name", "").startswith("procgen/")
        if is_of_levels:
            measure = f"levels {place}"
        elif plays_alone:
            measure = f"episodes {place}"
        else:
            measure = f"evaluate {place}"
        commit = f" (commit {self.git_commit})" if self.git_commit else ""
        lines = [
            f"# A policy for {self.environment.get('name', '?')}",
            "",
            f"Trained with {self.algorithm or 'an unnamed algorithm'} by procsnake{commit}: network"
            f" `{self.network.get('name')}`, observations {self.observation_dtype}"
            f" {self.observation_shape}, {self.action.get('num_actions')} actions.",
            "",
            "- `policy.onnx`: `observations` [batch, …] → `logits` float32 [batch, actions],"
            " `values` float32 [batch]",
            "- `weights.safetensors`: the same weights for torch (`agents.networks.build`)",
            "- `card.json`: contracts, configuration, seeds, versions, metrics, SHA-256 of the"
            " other files",
            "",
            f"Play it: `procsnake {watch}`; measure it: `procsnake {measure}`.",
        ]
        if self.command:
            lines.append(f"Train it again: `{self.command}`.")
        lines.append("")
        figures = {**self.steps, **self.metrics}
        lines += [f"- {name}: {number}" for name, number in figures.items()]
        return "\n".join(lines).rstrip() + "\n"


def _check_fields(data: Mapping[str, Any]) -> None:
    """Raise `BundleError` for a field of the card that is missing, unknown or of a wrong type."""
    declared = {one.name: one for one in fields(Card)}
    for name in data:
        if name not in declared:
            raise BundleError(
                f"card.json has an unknown field {name!r}; known: {', '.join(sorted(declared))}"
            )
    for name, declaration in declared.items():
        if name not in data:
            if declaration.default is MISSING and declaration.default_factory is MISSING:
                raise BundleError(f"card.json lacks the field {name!r}; export the bundle again")
            continue
        kind = _JSON_TYPES[str(declaration.type).partition("[")[0]]
        if not isinstance(data[name], kind) or isinstance(data[name], bool):
            raise BundleError(
                f"card.json: {name} is {_short(data[name])}; it must be of type {declaration.type}"
            )


def _check_part(data: Mapping[str, Any], name: str, key: str, kind: type) -> None:
    """Raise `BundleError` unless the card's field `name` has a value of this type under `key`."""
    value = data[name].get(key)
    if not isinstance(value, kind):
        raise BundleError(
            f"card.json: {name}.{key} is {_short(value)}; it must be of type {kind.__name__}"
        )


def _check_sizes(data: Mapping[str, Any]) -> None:
    """Raise `BundleError` for sizes that nobody plays: memory is allocated by the card's word
    alone.
    """
    shape = data["observation_shape"]
    are_sizes = all(type(side) is int and side > 0 for side in shape)
    if not are_sizes or not 1 <= len(shape) <= 4 or math.prod(shape) > _MAX_SHAPE:
        raise BundleError(
            f"card.json: observation_shape is {_short(shape)}; it must be 1 to 4 sizes,"
            f" {_MAX_SHAPE} in all at most"
        )
    num_actions = data["action"]["num_actions"]
    if not 1 <= num_actions <= _MAX_ACTIONS:
        raise BundleError(
            f"card.json: action.num_actions is {_short(num_actions)}; it must be 1 to"
            f" {_MAX_ACTIONS}"
        )
    dtype = data.get("observation_dtype", "uint8")
    if dtype not in _DTYPES:
        raise BundleError(
            f"card.json: observation_dtype is {_short(dtype)}; it must be one of"
            f" {', '.join(_DTYPES)}"
        )
    for name in ("network", "environment"):
        if not isinstance(data[name].get("options", {}), dict):
            raise BundleError(
                f"card.json: {name}.options is {_short(data[name]['options'])}; it must be a"
                " mapping"
            )


_JSON_TYPES: dict[str, type] = {"dict": dict, "list": list, "str": str, "int": int}


def _plain(value: Any) -> Any:
    """Return the value as JSON can hold it. `json` will refuse what is not a number, text, list
    or dict.
    """
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _short(value: Any) -> str:
    text = repr(value)
    if len(text) > 60:
        return text[:59] + "…"
    return text


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that shape a policy, as far as they are installed."""
    versions = {name: _version(name) for name in _LIBRARIES}
    return {name: number for name, number in versions.items() if number is not None}


@cache
def _version(name: str) -> str | None:
    """Return a library's version, or None without it. Reading it takes milliseconds."""
    with suppress(PackageNotFoundError):
        return version(name)
    return None
