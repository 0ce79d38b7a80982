"""Addresses of the Hub in commands' options."""

from __future__ import annotations

import argparse
from typing import Any

from agents.hub.address import SCHEME
from agents.hub.download import pinned


def pin_addresses(options: argparse.Namespace) -> None:
    """Add the current commit to each `hf://` address in a command's options.

    So a command and its processes use the same bundle throughout, and its output names that
    bundle. Raises `HubError` and `MissingDependencyError`."""
    for name, value in vars(options).items():
        if name not in getattr(options, "as_written", ()):
            setattr(options, name, _pinned(value))


def _pinned(value: Any) -> Any:
    if isinstance(value, list):
        return [_pinned(one) for one in value]
    if isinstance(value, str) and SCHEME in value:
        return pinned(value)
    return value
