"""Reading an experiment so that nothing of it is dropped without a word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from envs.errors import ProcsnakeError


class NoCounterpartError(ProcsnakeError):
    """An experiment that Ray 0.8.6 or the competition has no counterpart for. The message says what to change."""


class Section:
    """A section of an experiment that is taken key by key. What can't be kept is refused, and so is what nobody took."""

    def __init__(self, key: str, values: Mapping[str, Any]) -> None:
        self.key, self._left = key, dict(values)
        self._refusals: list[str] = []

    def take(self, name: str, default: Any = None) -> Any:
        """The value, which is hereby translated."""
        return self._left.pop(name, default)

    def require(self, name: str, allowed: Any, why: str) -> None:
        """Take a key of which only the value `allowed` can be kept."""
        value = self.take(name, allowed)
        if value != allowed:
            self.refuse(name, value, why, allowed)

    def refuse(self, name: str, value: Any, why: str, instead: Any) -> None:
        """Say why a value can't be kept, and which one can."""
        setting = instead if isinstance(instead, str) else json.dumps(instead)
        self._refusals.append(f"{self.key}.{name} is {value!r}: {why}; train with --set {self.key}.{name}={setting}")

    def refusals(self) -> list[str]:
        """All of them, one for each key that nobody took, too, unless it is off."""
        left = {name: value for name, value in self._left.items() if value}
        unknown = "it has no counterpart there; train without it"
        return self._refusals + [f"{self.key}.{name} is {value!r}: {unknown}" for name, value in left.items()]
