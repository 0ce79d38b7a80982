"""Checks that settings lie within their limits; errors name the setting as an experiment has it."""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Mapping
from typing import Any

from envs.common.errors import ConfigError


def require_schedule(section: Any, key: str, name: str, most: float = float("inf")) -> None:
    """Raise `ConfigError` unless the field is a number, or knots from step 0, with values from 0 to
    `most`.
    """
    value = getattr(section, name)
    full = f"{key}.{name}"
    knots = value if isinstance(value, list) else [[0.0, value]]
    if (
        not knots
        or any(len(knot) != 2 for knot in knots)
        or (isinstance(value, list) and (len(knots) < 2 or knots[0][0]))
    ):
        raise ConfigError(
            f"{full} is {value!r}; a schedule is two or more knots [agent steps, value], the first"
            " at 0 steps"
        )
    steps = [knot[0] for knot in knots]
    if any(later <= earlier for earlier, later in itertools.pairwise(steps)):
        raise ConfigError(f"{full}: the steps of its knots are {steps}; they must increase")
    if not all(0.0 <= knot[1] <= most for knot in knots):
        raise ConfigError(f"{full} is {value!r}; its values must be {_limits(0.0, most)}")


def require(section: Any, key: str, name: str, least: float, most: float = float("inf")) -> None:
    """Raise `ConfigError` unless the field is None or within the limits."""
    value = getattr(section, name)
    if value is not None and not least <= value <= most:
        full = f"{key}.{name}" if key else name
        raise ConfigError(f"{full} is {value!r}; it must be {_limits(least, most)}")


def require_plain(value: Any, key: str) -> None:
    """Raise `ConfigError` unless YAML can hold the value, because a run stores its experiment as
    YAML.
    """
    if isinstance(value, Mapping):
        for name, item in value.items():
            require_plain(item, f"{key}.{name}")
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            require_plain(item, f"{key}[{place}]")
    elif not (value is None or isinstance(value, str | int | float)):
        if hasattr(value, "__qualname__"):
            example = f"{value.__module__}:{value.__qualname__}"
        else:
            example = "my_module:name"
        raise ConfigError(
            f"{key} is {reprlib.repr(value)}, but a run writes its experiment down, which holds"
            f" plain values only. A part of your own is given by its name: {example!r}"
        )


def _limits(least: float, most: float) -> str:
    if most == float("inf"):
        return f"at least {least:g}"
    return f"between {least:g} and {most:g}"
