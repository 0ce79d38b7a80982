"""The card of a policy bundle: all that is to be known of a trained policy besides its weights."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from envs.errors import ProcsnakeError

FORMAT = "procsnake-policy"
FORMAT_VERSION = 1
_LIBRARIES = ("procsnake", "numpy", "numba", "gymnasium", "ray", "torch", "onnx", "safetensors")


class BundleError(ProcsnakeError):
    """A policy bundle that is missing, cut off, changed, of another make, or that doesn't fit the board."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What `card.json` holds: plain JSON values (NumPy's numbers become plain ones, numbers that are not finite become null).

    Readers know exactly these fields: whoever changes them raises FORMAT_VERSION.
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
    """SHA-256 of each other file of the bundle, by name; `export` fills it in."""
    format: str = FORMAT
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """The text of `card.json`. Raises `BundleError` if a field holds what JSON can't."""
        try:
            return json.dumps(_plain(asdict(self)), indent=2, allow_nan=False) + "\n"
        except (TypeError, ValueError) as error:
            raise BundleError(
                f"the card can't be written as JSON ({error}); give it plain numbers, strings, lists and dicts"
            ) from error

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Card:
        """Check what JSON can't. Raises `BundleError` naming the field that is missing, unknown or of the wrong type."""
        if not isinstance(data, Mapping) or data.get("format", FORMAT) != FORMAT:
            raise BundleError(f"card.json is not the card of a {FORMAT} bundle; export one with `procsnake train`")
        found = data.get("format_version", FORMAT_VERSION)
        if found != FORMAT_VERSION:
            raise BundleError(
                f"the bundle has format version {found!r}, this procsnake reads {FORMAT_VERSION}. Update procsnake"
            )
        known = {f.name: f for f in fields(cls)}
        for name in data:
            if name not in known:
                raise BundleError(f"card.json has an unknown field {name!r}; known: {', '.join(sorted(known))}")
        for name, f in known.items():
            if name not in data and f.default is MISSING and f.default_factory is MISSING:
                raise BundleError(f"card.json lacks the field {name!r}; export the bundle anew")
            kind = _JSON_TYPES[str(f.type).partition("[")[0]]
            if name in data and (not isinstance(data[name], kind) or isinstance(data[name], bool)):
                raise BundleError(f"card.json: {name} is {_short(data[name])}; it must be of type {f.type}")
        for name, key, kind in (("action", "num_actions", int), ("network", "name", str), ("environment", "name", str)):
            if not isinstance(data[name].get(key), kind):
                raise BundleError(
                    f"card.json: {name}.{key} is {_short(data[name].get(key))}; it must be of type {kind.__name__}"
                )
        return cls(**data)

    def readme(self) -> str:
        """A page for people who find the folder."""
        lines = [
            f"# A policy for {self.environment.get('name', '?')}",
            "",
            f"Trained with {self.algorithm or 'an unnamed algorithm'} by procsnake"
            + (f" (commit {self.git_commit})" if self.git_commit else "")
            + f": network `{self.network.get('name')}`, observations {self.observation_dtype} {self.observation_shape},"
            + f" {self.action.get('num_actions')} actions.",
            "",
            "- `policy.onnx`: `observations` [batch, …] → `logits` float32 [batch, actions], `values` float32 [batch]",
            "- `weights.safetensors`: the same weights for torch (`agents.networks.build`)",
            "- `card.json`: contracts, configuration, seeds, versions, metrics, SHA-256 of the other files",
            "",
            "Play it: `procsnake play --snake THIS_FOLDER`; measure it: `procsnake evaluate THIS_FOLDER --against greedy`.",
        ]
        if self.command:
            lines.append(f"Train it again: `{self.command}`.")
        lines += ["", *(f"- {name}: {number}" for name, number in {**self.steps, **self.metrics}.items())]
        return "\n".join(lines).rstrip() + "\n"


_JSON_TYPES: dict[str, type] = {"dict": dict, "list": list, "str": str, "int": int}


def _plain(value: Any) -> Any:
    """The value as JSON can hold it; what is no number, text, list or dict stays for `json` to refuse."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def library_versions() -> dict[str, str]:
    """Versions of the libraries that shape a policy, as far as they are installed."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
