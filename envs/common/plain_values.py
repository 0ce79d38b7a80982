"""Values of JSON and YAML: made ready for writing or publication, named by dotted keys, and checked
for secrets.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SECRETS = re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|(?i:secret_access_key|api_key|password)")


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


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values by dotted key, each with `prefix` in front. An empty mapping is a value,
    too.
    """
    by_key: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            by_key |= flat(value, f"{prefix}{key}.")
        else:
            by_key[f"{prefix}{key}"] = value
    return by_key


def looks_like_a_secret(text: str) -> bool:
    """Return whether the text seems to contain a key of AWS or of a tracking service."""
    return _SECRETS.search(text) is not None
