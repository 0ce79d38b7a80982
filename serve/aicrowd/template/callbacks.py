"""`train.py` and the grader look for `CustomCallbacks` here. Add your own methods to it."""

from __future__ import annotations

from procsnake_callbacks import LogRawReturn


class CustomCallbacks(LogRawReturn):
    """Logs the game's own returns."""
