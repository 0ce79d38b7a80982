"""Reads an experiment key by key, so that no key is dropped silently."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs.common.errors import ProcsnakeError

_NOTHING = object()


@dataclass(frozen=True)
class Refusal:
    """A setting that can't be kept, with the reason."""

    key: str
    value: Any
    why: str
    instead: Any = _NOTHING
    """A value that can be kept. If there is none, the setting must be left out."""

    @property
    def setting(self) -> str | None:
        """The `--set` override to a value that can be kept, or None."""
        if self.instead is _NOTHING:
            return None
        if isinstance(self.instead, str):
            return f"{self.key}={self.instead}"
        return f"{self.key}={json.dumps(self.instead)}"

    def __str__(self) -> str:
        if self.setting:
            way = f"use --set {shlex.quote(self.setting)}"
        else:
            way = "leave it out"
        return f"{self.key} is {self.value!r}: {self.why}; {way}"


class NoCounterpartError(ProcsnakeError):
    """Ray 0.8.6 or the competition has no counterpart for something in the experiment. The message
    says what to change.
    """

    settings: tuple[str, ...] = ()
    """Texts for `--set`, after which all of the experiment can be kept."""

    @classmethod
    def of(cls, name: str, refusals: Sequence[Refusal]) -> NoCounterpartError:
        """Return one error that names all refusals."""
        error = cls(f"{name} can't be exported: " + ". ".join(map(str, refusals)))
        error.settings = tuple(refusal.setting for refusal in refusals if refusal.setting)
        return error


class Section:
    """A section of an experiment that is translated key by key. Keys that can't be kept, or weren't
    translated, are refused.
    """

    def __init__(self, key: str, values: Mapping[str, Any]) -> None:
        self.key = key
        self._left = dict(values)
        self._refusals: list[Refusal] = []

    def take(self, name: str, default: Any = None) -> Any:
        """Return a key's value, and count the key as translated."""
        return self._left.pop(name, default)

    def require(self, name: str, allowed: Any, why: str) -> None:
        """Take a key for which only the value `allowed` can be kept."""
        value = self.take(name, allowed)
        if value != allowed:
            self.refuse(name, value, why, allowed)

    def refuse(self, name: str, value: Any, why: str, instead: Any) -> None:
        """Record why a value can't be kept, and which one can."""
        self._refusals.append(Refusal(f"{self.key}.{name}", value, why, instead))

    def refusals(self) -> list[Refusal]:
        """Return all refusals, including one for each key that wasn't translated, unless its value
        is off.
        """
        left = {name: value for name, value in self._left.items() if value}
        return self._refusals + [
            Refusal(f"{self.key}.{name}", value, "it has no counterpart there")
            for name, value in left.items()
        ]
