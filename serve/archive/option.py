"""The option that says where a server's games are."""

from __future__ import annotations

import argparse
import os

from envs.common.command_line import kept_at

SQLITE = "sqlite:///"


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add the option `--database`."""
    own = f"{SQLITE}{kept_at('games.db')}"
    which = f"database of games: sqlite:///FILE or postgresql://… (default: DATABASE_URL, or else {own})"
    parser.add_argument("--database", default=os.environ.get("DATABASE_URL") or own, metavar="URL", help=which)
