"""Finds secrets in texts that more people can read than should know them."""

from __future__ import annotations

import re

_SECRETS = re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|(?i:secret_access_key|api_key|password)")


def looks_like_a_secret(text: str) -> bool:
    """Return whether there seems to be a key of AWS in the text, or of a service that runs are
    logged to.
    """
    return _SECRETS.search(text) is not None
