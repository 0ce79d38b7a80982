"""Settings as plain values by dotted key, and a check for secrets among them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SECRETS = re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|(?i:secret_access_key|api_key|password)")


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values by dotted key, each with `prefix` in front. An empty mapping is a value,
    too.
    """
    by_key: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            by_key |= flat(value, f"{prefix}{key}.")
        else:
            by_key[f"{prefix}{key}"] = value
    return by_key


def looks_like_a_secret(text: str) -> bool:
    """Return whether the text seems to contain a key of AWS or of a tracking service."""
    return _SECRETS.search(text) is not None
