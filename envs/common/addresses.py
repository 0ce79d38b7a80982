"""Tells addresses such as s3://bucket/runs from paths, so that no local folder gets such a name."""

from __future__ import annotations

import os
import re

from envs.common.errors import ConfigError

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/")
"""A scheme has two letters at least: C:/ is a drive of Windows. Of two slashes, `Path` leaves
one.
"""


def scheme_of(text: str | os.PathLike[str]) -> str:
    """Return the scheme of an address, in small letters; empty for a path."""
    match = _ADDRESS.match(os.fspath(text))
    return match["scheme"].lower() if match else ""


def require_path(path: str | os.PathLike[str]) -> None:
    """Raise `ConfigError` if this is an address, and not a path on this machine."""
    if scheme := scheme_of(path):
        raise ConfigError(not_a_path(os.fspath(path), scheme))


def not_a_path(text: str, scheme: str) -> str:
    """Return why an address can't be used where a path is needed."""
    if scheme != "file":
        brought = "copy it here first, or mount it"
    else:
        brought = "leave out file://"
    return f"{text!r} is an address of {scheme}, where a path on this machine is needed; {brought}"
