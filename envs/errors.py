"""Every way a user's input can be wrong, one class a kind.

The command line prints the message of a `ProcsnakeError` on one line and exits with code 2; library users catch the
class they care about. A message says what was wrong, the value seen, the likely cause and what to try next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class ProcsnakeError(Exception):
    """Base of all errors that a user can cause and mend."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross processes; made anew of its message alone, as Python would, one with other arguments raises another.
        return _remade, (type(self), str(self), self.__dict__)


def _remade(kind: type[ProcsnakeError], message: str, attributes: dict[str, Any]) -> ProcsnakeError:
    error = kind.__new__(kind, message)
    error.__dict__.update(attributes)
    return error


class UnknownNameError(ProcsnakeError):
    """A name that nothing is registered under. The message offers the nearest known names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        near = difflib.get_close_matches(str(name), self.known, n=3, cutoff=0.5)
        offer = f"Did you mean {' or '.join(repr(n) for n in near)}?" if near else f"Known: {', '.join(self.known)}."
        super().__init__(" ".join(filter(None, (f"unknown {kind} {name!r}.", offer, hint))))


class ConfigError(ProcsnakeError):
    """A configuration value of the wrong type or outside its range."""


class InvalidStateError(ProcsnakeError):
    """A board, snake or state array that no game can have. The message begins with the offending field."""


class InvalidActionError(ProcsnakeError):
    """An action array of the wrong shape or type."""


class MissingDependencyError(ProcsnakeError):
    """An optional package (or system library) that this feature needs is not installed."""

    def __init__(self, package: str, *, feature: str, install: str) -> None:
        super().__init__(f"{feature} needs {package}, which is not installed. Try: {install}")
