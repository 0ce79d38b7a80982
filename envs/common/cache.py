"""Where files lie that can be made or fetched again: compiled kernels, and bundles of the Hub."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the folder of all caches: PROCSNAKE_CACHE, or `procsnake` in XDG_CACHE_HOME or
    ~/.cache.
    """
    default = os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "procsnake"
    )
    return Path(os.environ.get("PROCSNAKE_CACHE") or default)
