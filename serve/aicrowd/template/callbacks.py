"""`train.py` and the grader look for `CustomCallbacks` here; add your own methods to it."""

from __future__ import annotations

from procsnake_callbacks import LogRawReturn


class CustomCallbacks(LogRawReturn):
    """Logs the game's own returns."""
