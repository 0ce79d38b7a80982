"""Dotted keys, by which values of nested settings are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values by dotted key, each with `prefix` in front. An empty mapping is a value,
    too.
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        nested = isinstance(value, Mapping) and value
        found |= flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return found
