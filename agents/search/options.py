"""The values that a search's options may have, declared once, at the option:
`near: Annotated[int, Range(0, 1000, step=1, tuned=(1, 24))] = 7`.

A search checks its options against these ranges, a tuning looks for better values in them, and the
documentation prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from envs.common.errors import ConfigError


@dataclass(frozen=True)
class Range:
    """The values that an option may have, both ends included."""

    low: float
    high: float
    step: float | None = None
    """How far a tuning usually goes up and down from a value near its end; None for an option that
    isn't tuned.
    """
    tuned: tuple[float, float] | None = None
    """The part of the range in which a tuning looks; None for all of it."""
    is_linear: bool = False
    """Whether the evaluation is linear in the option, except for rounding to integers."""
    is_whole: bool = False
    """Whether only whole numbers will do. `ranges_of` reads it from the option's type."""

    @property
    def tuned_ends(self) -> tuple[float, float]:
        """The lowest and the highest value that a tuning tries."""
        return self.tuned or (self.low, self.high)

    def check(self, name: str, value: Any) -> None:
        """Raise `ConfigError` unless `value`, of whatever type, is a number in the range."""
        kind = Integral if self.is_whole else Real
        is_number = isinstance(value, kind) and not isinstance(value, bool)
        if is_number and self.low <= value <= self.high:
            return
        number = "a whole number" if self.is_whole else "a number"
        raise ConfigError(
            f"{name} is {value!r}; it must be {number} from {self.low} to {self.high}"
        )


@cache
def ranges_of(options: Callable[..., Any]) -> Mapping[str, Range]:
    """Return the ranges that a class declares for its fields, by name."""
    hints = get_type_hints(options, include_extras=True)
    ranges = {}
    for name, hint in hints.items():
        kind, *notes = get_args(hint) or (hint,)
        for note in notes:
            if isinstance(note, Range):
                is_whole = kind is int or int in get_args(kind)
                ranges[name] = replace(note, is_whole=is_whole)
    return MappingProxyType(ranges)


def check_options(options: Any) -> None:
    """Raise `ConfigError` for an option whose value isn't in its range. None stands for an option
    that isn't given.
    """
    kind: Any = type(options)
    for name, declared in ranges_of(kind).items():
        value = getattr(options, name)
        if value is not None:
            declared.check(name, value)
