"""The command line. Nothing in `envs`, `agents`, `train` and `serve` imports it."""

from procsnake.cli.main import main

__all__ = ["main"]
