"""The option that names the database of a server's games."""

from __future__ import annotations

import argparse

from envs.common.outputs import kept_at
from serve.archive.option import SQLITE, default_database


def add_database(parser: argparse.ArgumentParser) -> None:
    """Add the option `--database`."""
    own = f"{SQLITE}{kept_at('games.db')}"
    which = (
        "database of games: sqlite:///FILE or postgresql://… (default: DATABASE_URL, or else"
        f" {own})"
    )
    parser.add_argument("--database", default=default_database(), metavar="URL", help=which)
