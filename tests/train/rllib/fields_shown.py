"""Which of RLlib's fields the tests show: what a changed value changes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_Test = TypeVar("_Test", bound=Callable[..., object])
_SHOWN: set[str] = set()


def shows(*fields: str) -> Callable[[_Test], _Test]:
    """Say that a test shows what changed values of these fields of `AlgorithmConfig` change."""

    def note(test: _Test) -> _Test:
        _SHOWN.update(fields)
        return test

    return note


def shown_fields() -> set[str]:
    """Return the fields that some test of this folder shows."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        importlib.import_module(f"{__package__}.{path.stem}")
    return _SHOWN
