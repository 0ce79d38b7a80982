"""Prepares JSON values for writing, or for publication."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any


def without_folders(value: Any) -> Any:
    """Return a configuration, or a command's words, with only the last name of each absolute path,
    because bundles are published.
    """
    if isinstance(value, dict):
        return {key: without_folders(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_folders(one) for one in value]
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name
    return value


def known_to_json(value: Any) -> Any:
    """Return a value of JSON's types with null for numbers that JSON doesn't have, such as NaN and
    infinity.
    """
    if isinstance(value, dict):
        return {key: known_to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [known_to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
