"""The values that a search's options may have, declared at each option: `near: Annotated[int,
Range(1, 24, step=1)] = 7`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints


@dataclass(frozen=True)
class Range:
    """The values that make sense for an option, both ends included. `agents.search.tuning` looks for the
    best among them.
    """

    low: float
    high: float
    step: float
    """How far a tuning goes up and down from a value near its end, unless it is told otherwise."""
    is_linear: bool = False
    """Whether the evaluation is linear in the option, except for rounding to integers."""


def ranges_of(declared: Callable[..., Any]) -> Mapping[str, Range]:
    """Return the ranges that a function declares for its arguments, or a class for its fields, by
    name.
    """
    hints = get_type_hints(declared, include_extras=True)
    found = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {
        name: notes[0] for name, notes in found.items() if notes and isinstance(notes[0], Range)
    }
