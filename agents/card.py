"""The card of a policy bundle. It holds all that is known of a trained policy besides its
weights.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
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

    Readers accept exactly these fields. Whoever changes them must raise FORMAT_VERSION.
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
        found = data.get("format_version", FORMAT_VERSION)
        if found != FORMAT_VERSION:
            raise BundleError(
                f"the bundle has format version {found!r}, this procsnake reads {FORMAT_VERSION}."
                " Update procsnake"
            )
        known = {f.name: f for f in fields(cls)}
        for name in data:
            if name not in known:
                raise BundleError(
                    f"card.json has an unknown field {name!r}; known: {', '.join(sorted(known))}"
                )
        for name, f in known.items():
            if name not in data and f.default is MISSING and f.default_factory is MISSING:
                raise BundleError(f"card.json lacks the field {name!r}; export the bundle anew")
            kind = _JSON_TYPES[str(f.type).partition("[")[0]]
            if name in data and (not isinstance(data[name], kind) or isinstance(data[name], bool)):
                raise BundleError(
                    f"card.json: {name} is {_short(data[name])}; it must be of type {f.type}"
                )
        for name, key, kind in (
            ("action", "num_actions", int),
            ("network", "name", str),
            ("environment", "name", str),
        ):
            if not isinstance(data[name].get(key), kind):
                raise BundleError(
                    f"card.json: {name}.{key} is {_short(data[name].get(key))}; it must be of type"
                    f" {kind.__name__}"
                )
        _check_sizes(data)
        return cls(**data)

    def readme(self, place: str = "THIS_FOLDER") -> str:
        """Return the text of the README for people who find the folder; `place` is what they give
        to commands.
        """
        # Snakes have several types of observation; a world that has but one lends it its name.
        plays_alone = self.observation.get("type") == self.environment.get("name")
        watch = f"play {place}" if plays_alone else f"match {place} flood --watch"
        lines = [
            f"# A policy for {self.environment.get('name', '?')}",
            "",
            f"Trained with {self.algorithm or 'an unnamed algorithm'} by procsnake"
            + (f" (commit {self.git_commit})" if self.git_commit else "")
            + f": network `{self.network.get('name')}`, observations {self.observation_dtype}"
            f" {self.observation_shape}," + f" {self.action.get('num_actions')} actions.",
            "",
            (
                "- `policy.onnx`: `observations` [batch, …] → `logits` float32 [batch, actions],"
                " `values` float32 [batch]"
            ),
            "- `weights.safetensors`: the same weights for torch (`agents.networks.build`)",
            (
                "- `card.json`: contracts, configuration, seeds, versions, metrics, SHA-256 of the"
                " other files"
            ),
            "",
            f"Play it: `procsnake {watch}`; measure it: `procsnake evaluate {place}`.",
        ]
        if self.command:
            lines.append(f"Train it again: `{self.command}`.")
        lines += [
            "",
            *(f"- {name}: {number}" for name, number in {**self.steps, **self.metrics}.items()),
        ]
        return "\n".join(lines).rstrip() + "\n"


def _check_sizes(data: Mapping[str, Any]) -> None:
    """What is allocated by the card's word alone has to be something that can be played."""
    shape = data["observation_shape"]
    if (
        not 1 <= len(shape) <= 4
        or not all(type(side) is int and side > 0 for side in shape)
        or math.prod(shape) > _MAX_SHAPE
    ):
        raise BundleError(
            f"card.json: observation_shape is {_short(shape)}; it must be 1 to 4 sizes,"
            f" {_MAX_SHAPE} in all at most"
        )
    if not 1 <= data["action"]["num_actions"] <= _MAX_ACTIONS:
        raise BundleError(
            f"card.json: action.num_actions is {_short(data['action']['num_actions'])}; it must be"
            f" 1 to {_MAX_ACTIONS}"
        )
    if (dtype := data.get("observation_dtype", "uint8")) not in _DTYPES:
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
    """The value as JSON can hold it; what is no number, text, list or dict stays for `json` to
    refuse.
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
    return text if len(text) <= 60 else text[:59] + "…"


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that shape a policy, as far as they are installed."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
